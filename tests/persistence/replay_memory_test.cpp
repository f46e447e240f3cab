// A replay memory in RAM: what it stores, what it draws, and what it refuses.
#include <attune/persistence/replay_memory.hpp>

#include <cmath>
#include <limits>

#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/persistence/training_journal.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using attune::ReplayMemory;
using attune::ReplaySampling;
using attune::Rng;
using attune::Status;

using Features = attune::Tensor<float, 2, 3>;
using Balanced = ReplayMemory<Features, attune::ReplayShape{.capacity = 12, .num_classes = 3}>;
using Reservoir =
    ReplayMemory<Features, attune::ReplayShape{
                               .capacity = 12, .num_classes = 3, .sampling = ReplaySampling::kReservoir}>;

/// Features that tell their number.
Features example(int number) {
  Features made;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) made(i, j) = static_cast<float>(number % 120) + (i + j == 0 ? 127 : 0);
  }
  return made;
}
/// How often each of `examples` is stored, over `memories` seeds.
template <class Memory, int examples>
void expect_equal_chances(int memories) {
  int stored[std::size_t{examples}] = {};
  for (int seed = 0; seed < memories; ++seed) {
    Memory memory(static_cast<std::uint64_t>(seed));
    for (int i = 0; i < examples; ++i) EXPECT_EQ(memory.add(example(i), 0), Status::kOk);
    Rng rng(static_cast<std::uint64_t>(seed));
    Features drawn;
    int label = 0, length = 0;
    EXPECT_EQ(memory.draw(rng, drawn, label, length), Status::kOk);
    ++stored[static_cast<int>(std::lround(drawn(1, 2)))];
  }
  const int mean = memories / examples;
  for (const int count : stored) {
    EXPECT_GT(count, mean / 2);
    EXPECT_LT(count, mean * 2);
  }
}

/// What a memory stores of 200 examples of three classes.
template <class Memory>
std::uint32_t hash_of_200() {
  Memory memory;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(memory.add(example(i), i % 7 % 3), Status::kOk);
  std::uint32_t state = 2166136261u;
  Rng rng(5);
  for (int i = 0; i < 40; ++i) {
    Features drawn;
    int label = 0, length = 0;
    EXPECT_EQ(memory.draw(rng, drawn, label, length), Status::kOk);
    for (const float value : drawn.values) state = (state ^ std::bit_cast<std::uint32_t>(value)) * 16777619u;
    state = (state ^ static_cast<std::uint32_t>(label)) * 16777619u;
  }
  return state;
}

}  // namespace

TEST(ReplayMemory, stores_every_example_with_the_same_probability) {
  expect_equal_chances<Reservoir, 36>(check::kDepth >= check::kQuickHost ? 3600 : 1800);
  expect_equal_chances<Balanced, 12>(check::kDepth >= check::kQuickHost ? 1200 : 600);
}

TEST(ReplayMemory, has_the_same_bits_everywhere) {
  EXPECT_EQ(hash_of_200<Balanced>(), 935127968u);
  EXPECT_EQ(hash_of_200<Reservoir>(), 2130692874u);
}

TEST(ReplayMemory, keeps_rare_classes_if_it_is_balanced) {
  Balanced balanced;
  Reservoir reservoir;
  for (int i = 0; i < 400; ++i) {
    const int label = i < 4 ? 2 : i % 2;
    EXPECT_EQ(balanced.add(example(i), label), Status::kOk);
    EXPECT_EQ(reservoir.add(example(i), label), Status::kOk);
  }
  EXPECT_TRUE(balanced.full() && reservoir.full());
  int of_balanced[3] = {}, of_reservoir[3] = {};
  Rng rng(1);
  for (int i = 0; i < 600; ++i) {
    Features drawn;
    int label = 0, length = 0;
    EXPECT_EQ(balanced.draw(rng, drawn, label, length), Status::kOk);
    ++of_balanced[label];
    EXPECT_EQ(reservoir.draw(rng, drawn, label, length), Status::kOk);
    ++of_reservoir[label];
  }
  for (const int count : of_balanced) EXPECT_GT(count, 150);
  EXPECT_LT(of_reservoir[2], 150);
  EXPECT_EQ(balanced.counts()[2], 4u);
  EXPECT_EQ(reservoir.counts()[0], 400u);
}

TEST(ReplayMemory, draws_features_to_half_a_step_of_8_bits) {
  Balanced memory;
  Rng rng(3);
  Features added, drawn;
  for (float& value : added.values) value = rng.uniform(-2.0f, 2.0f);
  EXPECT_EQ(memory.add(added, 1), Status::kOk);
  int label = 0, length = 0;
  EXPECT_EQ(memory.draw(rng, drawn, label, length), Status::kOk);
  EXPECT_EQ(label, 1);
  EXPECT_EQ(length, 2);
  for (int i = 0; i < Features::size; ++i) {
    EXPECT_LT(std::fabs(drawn.values[i] - added.values[i]), 2.0f / 127 * 0.501f);
  }
}

TEST(ReplayMemory, refuses_invalid_examples_and_changes_nothing) {
  Balanced memory;
  Rng rng(1);
  Features features = example(1);
  int label = 7, length = 7;
  EXPECT_EQ(memory.draw(rng, features, label, length), Status::kNothingStored);
  EXPECT_EQ(label, 7);
  EXPECT_EQ(memory.add(features, -1), Status::kInvalidTarget);
  EXPECT_EQ(memory.add(features, 3), Status::kInvalidTarget);
  EXPECT_EQ(memory.add(features, 1, 1), Status::kInvalidLength);  // without has_lengths
  EXPECT_EQ(memory.add(features, 1, 3), Status::kInvalidLength);
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    features(1, 2) = wrong;
    EXPECT_EQ(memory.add(features, 1), Status::kNotFinite);
  }
  EXPECT_EQ(memory.size(), 0);
  EXPECT_EQ(memory.counts()[1], 0u);
  EXPECT_EQ(memory.add(example(1), 1), Status::kOk);
  memory.clear();
  EXPECT_EQ(memory.size(), 0);
  EXPECT_EQ(memory.draw(rng, features, label, length), Status::kNothingStored);
}

namespace {

using Front = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 3}>;
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 3, .d_out = 3}>;
Front::Parameters front;
using Model = attune::Sequential<attune::Frozen<Front, front>, Head>;
template <int batch>
using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, batch>;

}  // namespace

TEST(ReplayMemory, replays_into_a_batch_from_the_layer_where_training_begins) {
  Rng rng(1);
  front.initialize(attune::XavierUniform{}, rng);
  static Trainer<4> replayed, whole;
  replayed.initialize(attune::XavierUniform{}, Rng{2});
  whole.initialize(attune::XavierUniform{}, Rng{2});
  using Latent = Front::Output;
  static ReplayMemory<Latent, attune::ReplayShape{.capacity = 6, .num_classes = 3}> memory;
  EXPECT_EQ(memory.replay<1>(replayed, 1, rng), Status::kNothingStored);
  static Front::InferenceScratch scratch;
  for (int i = 0; i < 6; ++i) {
    Front::Input x;
    Latent features;
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    attune::infer<Front>(front, x, features, scratch);
    EXPECT_EQ(memory.add(features, i % 3), Status::kOk);
  }
  Rng draws(9), same_draws(9);
  EXPECT_EQ(memory.replay<1>(replayed, 4, draws), Status::kOk);
  for (int i = 0; i < 4; ++i) {
    Latent features;
    int label = 0, length = 0;
    EXPECT_EQ(memory.draw(same_draws, features, label, length), Status::kOk);
    const int target[] = {label};
    EXPECT_TRUE(whole.accumulate_from<1>(features, target).ok());
  }
  EXPECT_EQ(memory.replay<1>(replayed, 1, draws), Status::kFullBatch);
  EXPECT_TRUE(replayed.update({.learning_rate = 1e-2f}).ok() && whole.update({.learning_rate = 1e-2f}).ok());
  EXPECT_TRUE(check::same_bits(replayed.parameters(), whole.parameters()));
}

TEST(ReplayMemory, replays_in_slices_and_after_a_resume_with_the_same_draws) {
  Rng rng(1);
  front.initialize(attune::XavierUniform{}, rng);
  using Latent = Front::Output;
  using Memory = ReplayMemory<Latent, attune::ReplayShape{.capacity = 6, .num_classes = 3}>;
  static Memory memory;
  for (int i = 0; i < 6; ++i) {
    Latent features;
    for (float& value : features.values) value = rng.uniform(-1.0f, 1.0f);
    EXPECT_EQ(memory.add(features, i % 3), Status::kOk);
  }
  Front::Input x;
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  static Trainer<3> whole, sliced;
  whole.initialize(attune::XavierUniform{}, Rng{2});
  sliced.initialize(attune::XavierUniform{}, Rng{2});
  for (int step = 0; step < 6; ++step) {
    Rng draws{whole.state().steps};
    EXPECT_TRUE(whole.accumulate(x, 1).ok());
    EXPECT_EQ(memory.replay<1>(whole, 2, draws), Status::kOk);
    EXPECT_TRUE(whole.update({.learning_rate = 1e-2f}).ok());
  }
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {  // a reset: the program has stored the state and the memory
      static Trainer<3>::State state;
      state = sliced.state();
      static Memory stored;
      std::memcpy(static_cast<void*>(&stored), &memory, sizeof stored);
      memory.clear();
      EXPECT_EQ(sliced.resume([](auto& resumed) {
        resumed = state;
        return Status::kOk;
      }),
                Status::kOk);
      std::memcpy(static_cast<void*>(&memory), &stored, sizeof stored);
    }
    Rng draws{sliced.state().steps};
    EXPECT_TRUE(sliced.accumulate(x, 1).ok());
    for (int i = 0; i < 2; ++i) {
      Memory::Drawn drawn{};
      EXPECT_EQ(memory.draw(draws, drawn), Status::kOk);
      auto pass = sliced.accumulate_from_in_slices<1, 1>(drawn.x, drawn.target, drawn.mask);
      int slices = 0;
      while (pass.advance()) ++slices;
      EXPECT_TRUE(pass.result().ok() && slices > 1);
    }
    EXPECT_TRUE(sliced.update({.learning_rate = 1e-2f}).ok());
  }
  EXPECT_TRUE(check::same_bits(sliced.parameters(), whole.parameters()));
}

TEST(ReplayMemory, replays_into_a_journal_that_a_trainer_can_repeat) {
  static attune::Trainer<Head, attune::CrossEntropy<>, attune::AdamW, 2> trained, again;
  static ReplayMemory<Head::Input, attune::ReplayShape{.capacity = 3, .num_classes = 3}> memory;
  Rng rng(4);
  for (int i = 0; i < 3; ++i) {
    Head::Input x;
    for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
    EXPECT_EQ(memory.add(x, i), Status::kOk);
  }
  trained.initialize(attune::XavierUniform{}, Rng{2});
  again.initialize(attune::XavierUniform{}, Rng{2});
  static char bytes[1024];
  std::size_t size = 0;
  const auto sink = [&size](const char* more, std::size_t count) {
    if (size + count <= sizeof bytes) std::memcpy(bytes + size, more, count);
    size += count;
  };
  attune::TrainingJournal journal(trained, sink);
  journal.started();
  EXPECT_EQ(memory.replay(journal, 2, rng), Status::kOk);
  EXPECT_TRUE(journal.update({.learning_rate = 1e-2f}).ok());
  EXPECT_LT(size, sizeof bytes);
  attune::JournalReader reader(std::as_bytes(std::span(bytes, size)));
  attune::JournalEntry entry{};
  int sequences = 0;
  while (reader.next(entry) == Status::kOk) {
    if (entry.event != attune::JournalEvent::kSequenceBytes) continue;
    struct {
      Head::Input x;
      std::array<int, 1> target;
    } sequence;
    EXPECT_TRUE(entry.read(sequence));
    EXPECT_TRUE(again.accumulate(sequence.x, sequence.target).ok());
    ++sequences;
  }
  EXPECT_EQ(sequences, 2);
  EXPECT_TRUE(again.update({.learning_rate = 1e-2f}).ok());
  EXPECT_TRUE(check::same_bits(again.parameters(), trained.parameters()));
}

TEST(ReplayMemory, replays_sequences_with_their_lengths) {
  using Tokens = attune::Tensor<float, 4, 6>;
  using Sequence = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 6, .d_out = 5}>,
                                      attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 5}>,
                                      attune::Linear<attune::LinearShape{.rows = 1, .d_in = 5, .d_out = 2}>>;
  static attune::Trainer<Sequence, attune::CrossEntropy<>> replayed, whole;
  replayed.initialize(attune::XavierUniform{}, Rng{2});
  whole.initialize(attune::XavierUniform{}, Rng{2});
  static ReplayMemory<Tokens, attune::ReplayShape{.capacity = 2, .num_classes = 2, .has_lengths = true}>
      memory;
  Tokens tokens{};
  for (int i = 0; i < 3 * 6; ++i) tokens.values[i] = static_cast<float>(i % 6 == 0 ? 127 : i);
  EXPECT_EQ(memory.add(tokens, 1, 5), Status::kInvalidLength);
  EXPECT_EQ(memory.add(tokens, 1, 0), Status::kInvalidLength);
  EXPECT_EQ(memory.add(tokens, 1, 3), Status::kOk);
  Rng rng(1);
  EXPECT_EQ(memory.replay(replayed, 1, rng), Status::kOk);
  attune::SequenceLength<4> length;
  EXPECT_EQ(length.set_length(3), Status::kOk);
  EXPECT_TRUE(whole.accumulate(tokens, 1, length).ok());
  EXPECT_TRUE(check::same_bits(replayed.gradients(), whole.gradients()));
}
