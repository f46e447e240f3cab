// Journals of devices, replayed on a PC.
#include <attune/host/replay.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "check.hpp"
#include "exchange/nor_flash.hpp"
#include "persistence/journal_of_version_1.hpp"
#include "persistence/journaled_training.hpp"

namespace {

using namespace journaled;
using attune::Status;
using attune::host::Replay;

struct OnPc {
  using Trainer = journaled::Trainer;
  using Sequence = journaled::Sequence;
  static std::uint32_t base_crc() { return 0x1234; }
  static void start(Trainer& trainer, std::uint32_t number) { journaled::start(trainer, number); }
  static Status load(std::uint32_t number, Sequence& sequence) { return journaled::load(number, sequence); }
};
struct OtherData : OnPc {
  static Status load(std::uint32_t number, Sequence& sequence) {
    const Status status = OnPc::load(number, sequence);
    if (number == 6) sequence.x(0, 0) += 0.125f;
    return status;
  }
};

Memory memory;
Trainer trainer;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A device whose power fails at any moment: it saves a state every third step, resumes, and goes on to
/// `kSteps`.
template <class Flash>
class Device {
 public:
  static constexpr std::uint32_t kSteps = 20;

  /// Runs from a start of the device to its end, or until the power fails. Whether it has come to the end.
  static bool run(Flash& flash, Flash& log_flash) {
    attune::FlashJournal<Flash> log(log_flash);
    attune::FlashStore<Flash, Trainer::State> store(flash);
    if (log.open() != Status::kOk) return false;
    attune::TrainingJournal journal(trainer, log, {.hash_every = 1, .base_crc = 0x1234});
    if (trainer.resume([&](Trainer::State& state) { return store.load(state); }) == Status::kOk) {
      journal.resumed();
    } else {
      journaled::start(trainer, 3);
      journal.started(3);
    }
    while (trainer.state().steps < kSteps && journal.status() == Status::kOk) {
      EXPECT_TRUE(step(journal, static_cast<std::uint32_t>(trainer.state().steps)));
      if (trainer.state().steps % 3 != 0) continue;
      journal.saving();
      if (journal.status() == Status::kOk && store.save(trainer.state()) != Status::kOk) return false;
    }
    return journal.status() == Status::kOk;
  }
};

/// Replays the journal in memory, which must end with the device's state.
auto expect_same(auto& replay, const auto& device) {
  const auto report = replay.run(memory.all());
  EXPECT_EQ(report.problem, "");
  EXPECT_TRUE(check::same_bits(replay.trainer().state(), device.state()));
  return report;
}

}  // namespace

TEST(Replay, ends_with_the_bits_of_the_device) {
  memory.clear();
  ASSERT_TRUE(train(trainer, memory));
  Replay<OnPc> replay;
  const auto report = expect_same(replay, trainer);
  EXPECT_EQ(report.hash, attune::hash_bits(trainer.parameters()));
  EXPECT_EQ(report.sessions, 2u);
  EXPECT_EQ(report.sequences, 12u);
  EXPECT_EQ(report.steps, 5u);
  EXPECT_EQ(report.checks, 7u);
}

TEST(Replay, of_a_journal_of_version_1_ends_with_its_bits_or_names_the_other_arithmetic) {
  const auto report = Replay<OnPc>{}.run(std::as_bytes(std::span(kJournalOfVersion1)));
  if (attune::fingerprint(attune::kArithmeticName) == attune::fingerprint("unfused")) {
    EXPECT_EQ(report.problem, "");
    EXPECT_EQ(report.hash, kHashOfVersion1);
  } else {
    EXPECT_TRUE(contains(report.problem, "in another arithmetic"));
  }
}

TEST(Replay, names_the_first_step_that_differs) {
  memory.clear();
  journaled::start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 1, .base_crc = 0x1234});
  journal.started(7);
  for (std::uint32_t number = 0; number < 6; ++number) ASSERT_TRUE(step(journal, number));
  const auto report = Replay<OtherData>{}.run(memory.all());
  EXPECT_TRUE(contains(report.problem, "after step 4: parameters differ; they were last equal after step 3"))
      << report.problem;
  EXPECT_EQ(report.steps, 4u);
}

TEST(Replay, a_different_start_is_reported) {
  memory.clear();
  journaled::start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.base_crc = 0x1234});
  journal.started(8);
  EXPECT_TRUE(contains(Replay<OnPc>{}.run(memory.all()).problem, "after step 0: the state differs"));
}

TEST(Replay, refuses_other_models_bases_and_versions) {
  memory.clear();
  ASSERT_TRUE(train(trainer, memory));
  const auto problem_of = [](std::size_t at, unsigned char to) {
    Memory other = memory;
    other.bytes[at] = std::byte{to};
    constexpr std::size_t kCrc = 4 + sizeof(attune::JournalSession);
    const std::uint32_t crc = attune::crc32(other.bytes, kCrc);
    std::memcpy(other.bytes + kCrc, &crc, sizeof crc);
    return Replay<OnPc>{}.run(other.all()).problem;
  };
  EXPECT_TRUE(contains(problem_of(4, 2), "the journal has version 2"));
  EXPECT_TRUE(contains(problem_of(8, 2), "belongs to another model or optimizer"));
  EXPECT_TRUE(contains(problem_of(12, 2), "in another arithmetic, or with another base"));
  EXPECT_TRUE(contains(problem_of(16, 2), "recorded with another base"));
}

TEST(Replay, reports_damage_and_cut_entries_of_a_journal) {
  memory.clear();
  ASSERT_TRUE(train(trainer, memory));
  const auto cut = Replay<OnPc>{}.run(memory.all().first(memory.size - 3));
  EXPECT_EQ(cut.problem, "");
  EXPECT_EQ(cut.cut_bytes, 9u);
  EXPECT_EQ(cut.hash, attune::hash_bits(trainer.parameters()));
  memory.bytes[100] ^= std::byte{4};
  EXPECT_TRUE(contains(Replay<OnPc>{}.run(memory.all()).problem, "the journal is damaged at byte "));
  EXPECT_EQ(Replay<OnPc>{}.run({}).problem, "there is no journal");
}

/// The exit code of a replay program with a file of these bytes.
int exit_code_of(std::span<const std::byte> bytes) {
  const std::string path = testing::TempDir() + "journal_of_replay_test";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  std::string words[] = {"replay", path};
  char* pointers[] = {words[0].data(), words[1].data()};
  const int code = attune::host::replay_main<OnPc>(2, pointers);
  std::remove(path.c_str());
  return code;
}

TEST(Replay, a_program_ends_with_2_without_a_journal) {
  memory.clear();
  ASSERT_TRUE(train(trainer, memory));
  EXPECT_EQ(exit_code_of(memory.all()), 0);
  EXPECT_EQ(exit_code_of(memory.all().first(memory.size - 3)), 0);
  EXPECT_EQ(exit_code_of({}), 2);
  EXPECT_EQ(exit_code_of(std::as_bytes(std::span("int main() {} // another file"))), 2);
  memory.bytes[memory.size / 2] ^= std::byte{4};
  EXPECT_EQ(exit_code_of(memory.all()), 1);
}

TEST(Replay, of_a_journal_with_random_damage_ends_with_a_step_of_the_device_or_a_problem) {
  memory.clear();
  journaled::start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 1, .base_crc = 0x1234});
  std::vector<std::uint32_t> hashes{attune::hash_bits(Trainer{}.parameters()),  // of no journal at all
                                    attune::hash_bits(trainer.parameters())};
  journal.started(7);
  for (std::uint32_t number = 0; number < 6; ++number) {
    ASSERT_TRUE(step(journal, number));
    hashes.push_back(attune::hash_bits(trainer.parameters()));
  }
  attune::Rng rng(1);
  int problems = 0;
  for (int run = 0; run < 2000; ++run) {
    std::vector<std::byte> bytes(memory.all().begin(), memory.all().end());
    const auto place = [&] { return static_cast<std::ptrdiff_t>(rng.next() % (bytes.size() + 1)); };
    const auto first = place(), second = place(), to = place();
    const std::vector<std::byte> part(bytes.begin() + std::min(first, second),
                                      bytes.begin() + std::max(first, second));
    if (run % 3 == 0)
      bytes.erase(bytes.begin() + std::min(first, second), bytes.begin() + std::max(first, second));
    if (run % 3 == 1) bytes.insert(bytes.begin() + to, part.begin(), part.end());
    if (run % 3 == 2)
      std::copy_n(part.begin(), std::min(part.size(), bytes.size() - static_cast<std::size_t>(to)),
                  bytes.begin() + to);
    Replay<OnPc> replay;
    const auto report = replay.run(bytes);
    problems += !report.ok();
    EXPECT_TRUE(!report.ok() || std::find(hashes.begin(), hashes.end(), report.hash) != hashes.end());
  }
  EXPECT_GT(problems, 1000);
}

TEST(Replay, a_state_from_elsewhere_can_be_given) {
  memory.clear();
  journaled::start(trainer, 9);
  ASSERT_TRUE([] {
    Memory unused;
    attune::TrainingJournal journal(trainer, unused);
    return step(journal, 1);
  }());
  const Trainer::State state = trainer.state();
  attune::TrainingJournal journal(trainer, memory, {.base_crc = 0x1234});
  journal.resumed();
  ASSERT_TRUE(step(journal, 2));
  journal.write_hash();
  EXPECT_TRUE(contains(Replay<OnPc>{}.run(memory.all()).problem,
                       "resumed from a state of 1 steps that is not in the journal"));
  Replay<OnPc> replay;
  replay.add_state(state);
  EXPECT_EQ(replay.run(memory.all()).problem, "");
}

TEST(Replay, of_UpdateInBackward_and_of_a_plan_with_gradients_are_the_same) {
  using InBackward =
      attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward>;
  struct OneByOne : OnPc {
    using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW>;
    static void start(Trainer& one, std::uint32_t number) {
      one.initialize(attune::XavierUniform{}, attune::Rng(number));
    }
  };
  struct LeastMemory : OneByOne {
    using Trainer = InBackward;
    static void start(Trainer& one, std::uint32_t number) {
      one.initialize(attune::XavierUniform{}, attune::Rng(number));
    }
  };
  InBackward device;
  LeastMemory::start(device, 4);
  memory.clear();
  attune::TrainingJournal journal(device, memory, {.hash_every = 1, .base_crc = 0x1234});
  journal.started(4);
  journaled::Sequence sequence;
  for (std::uint32_t number = 0; number < 5; ++number) {
    (void)load(number, sequence);
    ASSERT_TRUE(journal.step(number, sequence.x, sequence.target, kOptions).ok());
  }
  EXPECT_EQ(Replay<LeastMemory>{}.run(memory.all()).problem, "");
  EXPECT_EQ(Replay<OneByOne>{}.run(memory.all()).hash, attune::hash_bits(device.parameters()));
}

TEST(Replay, has_masks_dropout_class_weights_and_slices_of_the_device) {
  constexpr attune::EncoderLayerShape kBlock{
      .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2, .dropout = 0.25}, .d_ff = 8};
  using Block = attune::EncoderLayer<kBlock>;
  using Loss = attune::WeightedCrossEntropy<4>;
  struct Encoder {
    using Trainer = attune::Trainer<Block, Loss, attune::Sgd<attune::Momentum::kClassic>, 3>;
    using Sequence = attune::JournaledSequence<Block::Input, std::array<int, 4>, attune::KeyPaddingMask<4>>;
    static Loss loss() { return Loss{{{0.5f, 2, 1, 1}}}; }
    static void start(Trainer& device, std::uint32_t number) {
      device.initialize(attune::XavierUniform{}, attune::Rng(number));
    }
    static Status load(std::uint32_t number, Sequence& sequence) {
      attune::Rng rng(number);
      for (float& value : sequence.x.values) value = rng.uniform(-1.0f, 1.0f);
      for (int& each : sequence.target) each = static_cast<int>(rng.next() % 4);
      return sequence.mask.set_length(1 + static_cast<int>(number % 4));
    }
  };
  static Encoder::Trainer device;
  Encoder::start(device, 5);
  memory.clear();
  attune::TrainingJournal journal(device, memory, {.hash_every = 1});
  journal.started(5);
  Encoder::Sequence sequence;
  for (std::uint32_t number = 0; number < 12; ++number) {
    ASSERT_EQ(Encoder::load(number, sequence), Status::kOk);
    if (number % 4 == 1) {
      auto pass = device.accumulate_in_slices(sequence.x, sequence.target, sequence.mask, Encoder::loss());
      while (pass.advance()) {
      }
      ASSERT_TRUE(pass.result().ok());
      journal.note_sequence(number);
    } else if (number % 4 == 2) {
      ASSERT_TRUE(journal.accumulate(sequence, Encoder::loss()).ok());
    } else {
      ASSERT_TRUE(
          journal.accumulate(number, sequence.x, sequence.target, sequence.mask, Encoder::loss()).ok());
    }
    if (number == 4) journal.discard();
    if (number % 3 != 2) continue;
    ASSERT_TRUE(journal.update_incomplete({.learning_rate = 0.1f}, attune::GradientClipping{1}).ok());
  }
  Replay<Encoder> replay;
  EXPECT_EQ(expect_same(replay, device).steps, 4u);
}

TEST(Replay, of_a_state_saved_within_a_batch_continues_with_its_sequences) {
  memory.clear();
  journaled::start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 1, .base_crc = 0x1234});
  journal.started(7);
  Sequence sequence;
  for (const std::uint32_t number : {0u, 1u}) {
    (void)load(number, sequence);
    ASSERT_TRUE(journal.accumulate(number, sequence.x, sequence.target).ok());
    if (number == 1) journal.saving();
  }
  ASSERT_TRUE(journal.update(kOptions).ok());
  Replay<OnPc> replay;
  EXPECT_EQ(expect_same(replay, trainer).steps, 1u);
}

TEST(Replay, of_a_guarded_training_takes_over_the_best_parameters) {
  memory.clear();
  journaled::start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 1, .base_crc = 0x1234});
  journal.started(7);
  attune::GuardedTraining<Trainer> guard;
  ASSERT_TRUE(step(journal, 0));
  ASSERT_EQ(guard.begin(trainer, {.loss_sum = 1, .right = 1, .count = 1}, {}), Status::kOk);
  ASSERT_TRUE(step(journal, 1) && step(journal, 2));
  Sequence sequence;
  (void)load(6, sequence);
  ASSERT_TRUE(journal.accumulate(6, sequence.x, sequence.target).ok());
  ASSERT_EQ(guard.finish(trainer), Status::kOk);
  journal.saving();
  ASSERT_TRUE(step(journal, 4));
  Replay<OnPc> replay;
  EXPECT_EQ(expect_same(replay, trainer).loads, 1u);
}

TEST(Replay, loads_sequences_with_masks_that_view_a_matrix) {
  using Attention =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 1}>;
  struct Biased {
    using Trainer = attune::Trainer<Attention>;
    using Mask = attune::AdditiveMask<float, 2, 2>;
    using Sequence = attune::JournaledSequence<Attention::Input, Attention::Output, Mask>;
    static void start(Trainer& device, std::uint32_t number) {
      device.initialize(attune::XavierUniform{}, attune::Rng(number));
    }
    static Status load(std::uint32_t number, std::unique_ptr<Sequence>& sequence) {
      static constexpr attune::Tensor<float, 2, 2> kBias{{0.5f, -1, 0, 2}};
      sequence = std::make_unique<Sequence>(Sequence{{{1, 2, 3}}, {{1, 0, 1}}, Mask(kBias)});
      sequence->x(1, 0) = static_cast<float>(number);
      return Status::kOk;
    }
  };
  struct Nothing : Biased {
    static Status load(std::uint32_t, std::unique_ptr<Sequence>&) { return Status::kOk; }
  };
  Biased::Trainer device;
  Biased::start(device, 5);
  memory.clear();
  attune::TrainingJournal journal(device, memory, {.hash_every = 1});
  journal.started(5);
  std::unique_ptr<Biased::Sequence> sequence;
  for (std::uint32_t number = 0; number < 3; ++number) {
    ASSERT_EQ(Biased::load(number, sequence), Status::kOk);
    ASSERT_TRUE(journal.step(number, sequence->x, sequence->target, {}, {}, sequence->mask).ok());
  }
  Replay<Biased> replay;
  (void)expect_same(replay, device);
  EXPECT_TRUE(
      contains(Replay<Nothing>{}.run(memory.all()).problem, "after step 0: sequence 0 cannot be loaded"));
}

TEST(Replay, of_a_device_that_was_reset_twelve_times_ends_with_its_bits) {
  using Flash = NorFlash<NorShape{.unit = 8, .pages = 240}>;
  Flash never_cut, log_never_cut;
  ASSERT_TRUE(Device<Flash>::run(never_cut, log_never_cut));
  const Trainer::State uninterrupted = trainer.state();
  for (std::uint32_t seed = 1; seed < 20; ++seed) {
    Flash flash(seed), log(seed + 100);
    for (int resets = 0; resets < 12; ++resets) {
      Flash& cut = resets % 2 == 0 ? log : flash;
      cut.cut_at(cut.random() % (resets % 2 == 0 ? 200 : 40), static_cast<Tear>(cut.random() % 5));
      (void)Device<Flash>::run(flash, log);
      flash.power_on();
      log.power_on();
    }
    ASSERT_TRUE(Device<Flash>::run(flash, log));
    EXPECT_TRUE(check::same_bits(trainer.state(), uninterrupted));
    EXPECT_EQ(log.misuses + flash.misuses, 0u);
    std::string journal;
    attune::FlashJournal<Flash> reader(log);
    ASSERT_EQ(reader.open(), Status::kOk);
    ASSERT_EQ(reader.write_to([&](const char* bytes, std::size_t count) { journal.append(bytes, count); }),
              Status::kOk);
    Replay<OnPc> replay;
    const auto report = replay.run(std::as_bytes(std::span(journal)));
    EXPECT_EQ(report.problem, "");
    EXPECT_EQ(report.hash, attune::hash_bits(uninterrupted.parameters));
    EXPECT_GT(report.sessions, 5u);
  }
}
