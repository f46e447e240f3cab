// A device that recognizes spoken digits adapts to the voice of its owner. What it has of the factory is in
// flash, as base.cpp trained it on a PC with other speakers; from five takes of each digit it trains a part
// of it, and is tested before and after, with other recordings of its owner and with those of the others.
//
//   --steps N    the first N training steps only
//   --old-classes N  the base knows digits below N; the head grows for the others
//   --resets 1   the power fails behind the last one: what was learned is kept in what behaves as flash (of
//                everything, and of factors beside every weight, that has no room)
//   --journal 1  trains with a journal, over --resets N power failures, and prints it (journal.hpp)
#include <algorithm>
#include <cstdint>

#include <arguments.hpp>
#include <instructions.hpp>

#include <personalise_base.hpp>
#include <personalise_recordings.hpp>

#include "../flash_rows.hpp"
#include "../monitor/nonvolatile.hpp"
#include "../terminal.hpp"
#include "journal.hpp"
#include "learner.hpp"

namespace {

using namespace personalise;

constexpr Method kMethod = method_named(ATTUNE_EXAMPLE_METHOD);
#if ATTUNE_EXAMPLE_PRECISION_INT8
constexpr auto& kBase = attune::kPackedInt8<Names, personalise_base>;
constexpr std::size_t kBaseBytes = sizeof kBase;
#else
constexpr auto& kBase = attune::kInFlash<Names, personalise_base>;
constexpr std::size_t kBaseBytes = personalise_base::kSize;
#endif
constexpr auto kFront = attune::references_to<Front>(kBase.layer<0>());
using Adapting = Learner<kMethod, kBase, kFront>;
constexpr attune::MemoryReport kMemory = Adapting::memory();
static_assert(kMemory.total() <= most_ram(kMethod));

Adapting learner{};
Example example{};
Logits logits;
std::uint64_t inference_instructions, step_instructions;  // of the first; 0 where nobody counts

/// The part of recordings that is recognized.
float accuracy(std::span<const Recording> recordings) {
  int right = 0;
  for (const Recording& recording : recordings) {
    load(recording, example);
    if (learner.classify(example, logits) != attune::Status::kOk) continue;
    right += std::max_element(logits.values, logits.values + kDigits) - logits.values == recording.digit;
  }
  return static_cast<float>(right) / static_cast<float>(recordings.size());
}

struct Accuracies {
  float own = 0, others = 0;
  Accuracies() = default;
  explicit Accuracies(const Recordings& recordings)
      : own(accuracy(recordings.of(Use::kOwnTest))), others(accuracy(recordings.of(Use::kOthersTest))) {}

  void print(const char* when) const {
    port::print("recognized ", when, ": ", port::fixed(100 * own, 1), " % of the new speaker's recordings, ",
                port::fixed(100 * others, 1), " % of the others'\n");
  }
};

template <class SomeLearner>
void start(SomeLearner& some_learner, int old_classes) {
  if constexpr (requires { some_learner.start(old_classes); }) {
    some_learner.start(old_classes);
  } else {
    some_learner.start();
  }
}
template <class SomeLearner>
Status end(SomeLearner& some_learner) {
  if constexpr (requires { some_learner.end(); }) return some_learner.end();
  if constexpr (requires { some_learner.result(); }) {
    const auto& result = some_learner.result();
    port::print("learns in ", result.rounds, " rounds; clear takes ", port::fixed(100 * result.clear, 0),
                " %, agreement ", port::fixed(100 * result.agreement, 0), " %, imbalance ",
                port::fixed(100 * result.imbalance, 0), " %\n");
  }
  return Status::kOk;
}
/// Calls train(), and counts instructions of the first step.
Status train_step(int step, const auto& train) {
  const bool first = step == 0 && port::reset_count() == 0;
  if (first) port::begin_counting();
  const Status status = train();
  if (first) step_instructions = port::end_counting();
  return status;
}

Status learn(const Recordings& recordings, int steps) {
  if (const Status status = learner.begin(recordings); status != Status::kOk) return status;
  for (int step = 0; step < steps; ++step) {
    const Status status = train_step(step, [&] { return learner.step(recordings, step); });
    if (status != Status::kOk) return status;
  }
  return end(learner);
}

constexpr std::size_t kJournalMemory = nonvolatile_of_journal<Adapting>();
#if defined(__unix__) || defined(__APPLE__)
unsigned char* map_journal() { return static_cast<unsigned char*>(monitor::map_file(kJournalMemory)); }
#else
alignas(8) [[gnu::section(".noinit.journal")]] unsigned char journal_in_ram[kJournalMemory];
unsigned char* map_journal() { return journal_in_ram; }
#endif

/// Learns with a journal, if the method has a trainer of the model. In integers there is none.
template <class Learner>
Status learn_with_journal([[maybe_unused]] Learner& learning, [[maybe_unused]] const Recordings& recordings,
                          [[maybe_unused]] int steps, [[maybe_unused]] int resets) {
  if constexpr (!kInIntegers && requires { learning.trainer(); }) {
    unsigned char* const nonvolatile = map_journal();
    if (nonvolatile == nullptr) return Status::kFlashFault;
    JournaledLearning<Learner> journaled(learning, nonvolatile);
    const Status status = journaled.learn(
        recordings, steps, resets, [](int step, const auto& train) { return train_step(step, train); });
    return status == Status::kOk ? journaled.print_journal() : status;
  } else {
    port::print(ATTUNE_EXAMPLE_METHOD, " has no journal\n");
    return Status::kFlashFault;
  }
}

using Learned = std::remove_cvref_t<decltype(learner.parameters())>;
constexpr bool kFitsTwice = 2 * (sizeof(Learned) + monitor::kPageSize) <= sizeof monitor::Nonvolatile::flash;

/// Calls body(store) with what keeps the learned parameters over a reset; kFlashFault where there is no room.
template <class Body>
Status with_store(const Body& body) {
  if constexpr (Adapting::kTrainedParameters > 0 && kFitsTwice) {
    monitor::Nonvolatile* const nonvolatile = monitor::map_nonvolatile();
    if (nonvolatile == nullptr) return Status::kFlashFault;
    if (port::reset_count() == 0) *nonvolatile = {};
    monitor::Flash flash(nonvolatile->flash);
    attune::FlashStore<monitor::Flash, Learned> store(flash);
    return body(store);
  } else {
    port::print("no room to keep what is learned over a reset\n");
    return Status::kFlashFault;
  }
}

/// Learns, and with resets does not return; after them, what was kept.
Status learn_or_restore(const Recordings& recordings, int steps, bool resets) {
  if (port::reset_count() > 0) {
    return with_store([](auto& store) {
      return learner.restore([&store](Learned& parameters) { return store.load(parameters); });
    });
  }
  const Status status = learn(recordings, steps);
  if (status != Status::kOk || !resets) return status;
  return with_store([](auto& store) {
    const Status saved = store.save(learner.parameters());
    if (saved == Status::kOk) {
      port::print("keeps ", sizeof(Learned), " bytes of training state; reset\n");
      port::reset();
    }
    return saved;
  });
}

/// Of what was learned; where that is nothing, of the base.
std::uint32_t hash_of_parameters() {
  if constexpr (Adapting::kTrainedParameters > 0) {
    return attune::hash_bits(learner.parameters());
  } else {
    return attune::hash_bits(kBase);
  }
}

void count_inference(const Recording& recording) {
  load(recording, example);
  port::begin_counting();
  const attune::Status status = learner.classify(example, logits);
  if (status == attune::Status::kOk) inference_instructions = port::end_counting();
}

}  // namespace

int main() {
  const int steps = std::min(port::argument("--steps", Adapting::kSteps), Adapting::kSteps);
  const Recordings recordings{.all = flash_rows<Recording, personalise_recordings>(),
                              .fault = static_cast<Fault>(port::argument("--labels", 0)),
                              .rate_times = static_cast<float>(port::argument("--learning-rate-scale", 1))};
  const auto takes = recordings.of(Use::kTakes);
  const int speaker = takes[0].speaker;
  port::print("personalise on ", port::name(), ": speaker ", speaker, " is new; ", ATTUNE_EXAMPLE_METHOD,
              ", ", Adapting::kTrainedParameters, " of ", sizeof(Whole::Parameters) / sizeof(float),
              " parameters, from ", takes.size(), " recordings\n");

  const std::size_t heap_calls_before = port::heap_calls();
  port::paint_stack();
  start(learner, port::argument("--old-classes", kDigits));
  const int resets = port::argument("--resets", 0);
  const bool journaled = port::argument("--journal", 0) > 0;
  Accuracies before;
  if (!journaled || port::reset_count() >= static_cast<std::uint32_t>(resets)) {  // the power will not fail
    before = Accuracies(recordings);
    before.print("before");
  }
  const Status status = journaled ? learn_with_journal(learner, recordings, steps, resets)
                                  : learn_or_restore(recordings, steps, resets > 0);
  if (status != Status::kOk) {
    port::print("stopped: ", attune::message(status), '\n');
    return 1;
  }
  const Accuracies after(recordings);
  after.print("after");
  count_inference(takes[0]);
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;

  terminal::print_memory("training, the base in flash", kMemory);
  port::print("flash of the base ", kBaseBytes, " bytes, of ", recordings.all.size(), " recordings ",
              personalise_recordings::kSize, '\n');
  port::print("result example=personalise target=", port::name(), " method=", ATTUNE_EXAMPLE_METHOD,
              " precision=", kInIntegers ? "int8" : "float", " speaker=", speaker, " steps=", steps,
              " own_before=", port::fixed(before.own, 4), " own_after=", port::fixed(after.own, 4),
              " others_before=", port::fixed(before.others, 4),
              " others_after=", port::fixed(after.others, 4));
  port::print(" trained_parameters=", Adapting::kTrainedParameters, " ram_bytes=", kMemory.total(),
              " tape_bytes=", kMemory.tape, " stack_bytes=", stack, " heap_calls=", heap_calls,
              " resets=", port::reset_count(), " base_bytes=", kBaseBytes,
              " recordings_bytes=", personalise_recordings::kSize);
  if (steps > 0) terminal::print_instructions("step", step_instructions);
  terminal::print_instructions("inference", inference_instructions);
  port::print(" parameters_hash=", port::hex8(hash_of_parameters()), '\n');
  return 0;
}
