// What a journal writes, and that it changes nothing in a training. tests/host/replay_test.cpp replays
// journals.
#include <attune/persistence/training_journal.hpp>

#include "check.hpp"
#include "persistence/journaled_training.hpp"

namespace {

using namespace journaled;
using attune::JournalEvent;
using attune::Status;

/// The events of a journal, a letter each.
template <std::size_t room>
void list(const Memory& memory, char (&events)[room]) {
  std::size_t count = 0;
  attune::JournalReader reader(memory.all());
  attune::JournalEntry entry;
  while (count + 1 < room && reader.next(entry) == Status::kOk)
    events[count++] = "-SIRsbudvhl"[static_cast<int>(entry.event)];
  events[count] = '\0';
}

// Records that are written as their bytes.
using attune::detail::RefersElsewhere;
using Mask = attune::AdditiveMask<float, 2, 2>;
using Padding = attune::KeyPaddingMask<2>;
static_assert(!RefersElsewhere<Model::Input>::value && !RefersElsewhere<std::array<int, 2>>::value &&
              !RefersElsewhere<float[2][3]>::value && !RefersElsewhere<Padding>::value &&
              !RefersElsewhere<int>::value &&
              !RefersElsewhere<attune::BothMasks<attune::CausalMask, Padding>>::value);
static_assert(RefersElsewhere<attune::ConstView<Model::Input>>::value &&
              RefersElsewhere<attune::Ids<2>>::value && RefersElsewhere<std::span<const float, 6>>::value &&
              RefersElsewhere<const float*>::value && RefersElsewhere<std::array<const float*, 2>>::value &&
              RefersElsewhere<const float* [2]>::value && RefersElsewhere<Mask>::value &&
              RefersElsewhere<attune::BothMasks<Padding, Mask>>::value);

Memory memory;
Trainer trainer, other;

/// A sink that fails behind so many bytes.
struct Failing {
  std::size_t left, taken = 0;
  Status operator()(const char*, std::size_t count) {
    if (count > left) return Status::kJournalFull;
    left -= count;
    taken += count;
    return Status::kOk;
  }
};

}  // namespace

TEST(TrainingJournal, has_an_entry_for_each_event_in_order) {
  memory.clear();
  EXPECT_TRUE(train(trainer, memory));
  char events[100];
  list(memory, events);
  EXPECT_STREQ(events, "SIssussuhsdbuvssuhSRssuhssuh");
}

TEST(TrainingJournal, changes_no_bit_of_a_training) {
  memory.clear();
  EXPECT_TRUE(train(trainer, memory));
  start(other, 7);
  Sequence sequence;
  const auto accumulate = [&](std::uint32_t number) {
    (void)load(number, sequence);
    EXPECT_TRUE(other.accumulate(sequence.x, sequence.target).ok());
  };
  for (const std::uint32_t number : {0u, 2u}) {
    accumulate(number);
    accumulate(number + 1);
    EXPECT_TRUE(other.update(kOptions).ok());
  }
  accumulate(50);
  EXPECT_TRUE(other.update_incomplete(kOptions, attune::GradientClipping{0.5f}).ok());
  for (const std::uint32_t number : {6u, 8u}) {
    accumulate(number);
    accumulate(number + 1);
    EXPECT_TRUE(other.update(kOptions).ok());
  }
  EXPECT_TRUE(check::same_bits(trainer.state(), other.state()));
}

TEST(TrainingJournal, writes_nothing_about_refused_calls) {
  memory.clear();
  start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory);
  journal.started(7);
  EXPECT_TRUE(step(journal, 0));
  const std::size_t before = memory.size;
  Sequence sequence;
  EXPECT_EQ(journal.update(kOptions).status, Status::kIncompleteBatch);
  journal.discard();
  (void)load(3, sequence);
  sequence.target(0, 0) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(journal.accumulate(3, sequence.x, sequence.target).status, Status::kNotFinite);
  EXPECT_EQ(memory.size, before);
}

TEST(TrainingJournal, writes_a_state_that_was_loaded_elsewhere) {
  memory.clear();
  start(trainer, 7);
  const Model::Parameters parameters = trainer.parameters();
  attune::TrainingJournal journal(trainer, memory);
  journal.started(7);
  EXPECT_TRUE(step(journal, 0));
  trainer.load(parameters);
  journal.saving();
  EXPECT_TRUE(step(journal, 1) && step(journal, 2));
  trainer.load(parameters);
  EXPECT_TRUE(step(journal, 3));
  trainer.load(parameters);
  trainer.load(parameters);
  journal.write_hash();
  trainer.load(parameters);  // at as many steps
  journal.note_load();
  char events[100];
  list(memory, events);
  EXPECT_STREQ(events, "SIssulvssussulssulhl");
}

TEST(TrainingJournal, takes_twelve_bytes_for_a_sequence_by_number) {
  memory.clear();
  start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 0});
  journal.started(7);
  const std::size_t before = memory.size;
  EXPECT_TRUE(step(journal, 0));
  EXPECT_EQ(memory.size, before + 2 * 12 + 12 + sizeof(Trainer::Options));
}

TEST(TrainingJournal, a_sink_that_fails_ends_the_journal_and_not_the_training) {
  start(trainer, 7);
  Failing sink{.left = 150};
  attune::TrainingJournal journal(trainer, sink);
  journal.started(7);
  EXPECT_EQ(journal.status(), Status::kOk);
  for (std::uint32_t number = 0; number < 4; ++number) EXPECT_TRUE(step(journal, number));
  EXPECT_EQ(journal.status(), Status::kJournalFull);
  EXPECT_EQ(trainer.state().steps, 4u);
  const std::size_t taken = sink.taken;
  sink.left = 1000;
  EXPECT_TRUE(step(journal, 4));
  EXPECT_EQ(sink.taken, taken);
  journal.resumed();  // of a new session it is whole again
  EXPECT_EQ(journal.status(), Status::kOk);
}

TEST(TrainingJournal, steps_of_UpdateInBackward_are_a_sequence_and_an_update) {
  using InBackward =
      attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward>;
  static InBackward in_backward;
  in_backward.initialize(attune::XavierUniform{}, attune::Rng(7));
  memory.clear();
  attune::TrainingJournal journal(in_backward, memory);
  journal.started(7);
  Sequence sequence;
  (void)load(1, sequence);
  EXPECT_TRUE(journal.step(1, sequence.x, sequence.target, kOptions).ok());
  char events[100];
  list(memory, events);
  EXPECT_STREQ(events, "SIsu");
}

TEST(TrainingJournal, writes_nothing_about_calls_between_the_slices_of_an_update) {
  static attune::SharedBuffers<Model> buffers;
  static attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::InSharedBuffers<buffers>>
      in_slices;
  static attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1,
                         attune::InSharedBuffers<buffers, attune::UpdateInBackward>>
      in_backward;
  in_slices.initialize(attune::XavierUniform{}, attune::Rng(7));
  in_backward.initialize(attune::XavierUniform{}, attune::Rng(7));
  memory.clear();
  attune::TrainingJournal journal(in_slices, memory);
  attune::TrainingJournal beside(in_backward, memory);
  journal.started(7);
  Sequence sequence;
  (void)load(1, sequence);
  EXPECT_TRUE(journal.accumulate(1, sequence.x, sequence.target).ok());
  auto update = in_slices.update_in_slices<4>(kOptions);
  while (in_slices.state().check() == Status::kOk) update.advance();
  EXPECT_EQ(in_slices.state().check(), Status::kUnderWay);
  EXPECT_EQ(journal.step(2, sequence.x, sequence.target, kOptions).status, Status::kUnderWay);
  EXPECT_EQ(beside.step(2, sequence.x, sequence.target, kOptions).status, Status::kUnderWay);
  journal.discard();
  journal.saving();
  journal.write_hash();
  while (update.advance()) {
  }
  journal.note_update(update.result().status, kOptions);
  EXPECT_TRUE(update.result().ok());
  char events[100];
  list(memory, events);
  EXPECT_STREQ(events, "SIsu");
  EXPECT_TRUE(journal.accumulate(1, sequence.x, sequence.target).ok());
  update = in_slices.update_in_slices<4>(kOptions);
  while (update.advance()) {
  }
  journal.saving();  // in front of note_update()
  journal.note_update(update.result().status, kOptions);
  list(memory, events);
  EXPECT_STREQ(events, "SIsuslv");
  const std::size_t before = memory.size;
  EXPECT_EQ(beside.step(2, sequence.x, sequence.target, {.learning_rate = -1}).status,
            Status::kInvalidLearningRate);
  EXPECT_EQ(memory.size, before);
}
