// Misuse of attune/persistence that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: flash_of_one_slot
// error: attune::FlashStore: the store needs two slots of kSlotPages pages to survive power cuts; use more pages, or fewer records
// error by gcc: needed = 4; pages = 3
// error by clang: (3 >= 4)
#include "flash.hpp"

using Flash = FlashOf<3>;
struct State {
  float values[300];
};

constexpr auto slots = attune::FlashStore<Flash, State>::kSlots;

// case: flash_with_a_strange_program_unit
// error: attune::FlashStore: Flash::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes
#include "flash.hpp"

using Flash = FlashOf<4, 64>;

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;

// case: flash_without_sync
// error: attune::FlashStore: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, program, erase and sync, which return a Status
#include "flash.hpp"

struct Flash : FlashOf<4> {
  void sync();
};

constexpr auto slots = attune::FlashStore<Flash, int>::kSlots;

// case: journal_in_flash_without_sync
// error: attune::FlashJournal: Flash needs kPageSize, kPages, kProgramUnit, kErased, and read, program, erase and sync, which return a Status
#include "flash.hpp"

#include <attune/persistence/flash_journal.hpp>

struct Flash : FlashOf<4> {
  void sync();
};

constexpr auto capacity = attune::FlashJournal<Flash>::kCapacity;

// case: journal_in_flash_with_a_strange_page
// error: attune::FlashJournal: Flash::kPageSize must be a multiple of the program unit
#include "flash.hpp"

#include <attune/persistence/flash_journal.hpp>

struct Flash : FlashOf<4, 8> {
  static constexpr std::uint32_t kPageSize = 100;
};

constexpr auto capacity = attune::FlashJournal<Flash>::kCapacity;

// case: journal_of_training_without_backward
// error: attune::TrainingJournal: a ForwardOnlyTrainer needs no journal; keep the `change` of each update's result, and replay() repeats the training
#include "journal.hpp"

void train(attune::ForwardOnlyTrainer<Model>& trainer, Sink& sink, const Model::Input& x,
           const Model::Output& y) {
  attune::TrainingJournal journal(trainer, sink);
  journal.started(1);
  (void)journal.accumulate(1, x, y);
  (void)journal.update({.learning_rate = 0.1f});
  journal.saving();
}

// case: journal_of_a_crew
// error: attune::TrainingJournal: a journal is for a Trainer, whose sequences and updates go through it; replay
#include "journal.hpp"

attune::CrewTrainer<attune::OneCore, Model> trainer;
void train(Sink& sink) { attune::TrainingJournal(trainer, sink).started(1); }

// case: journaled_update_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
#include "journal.hpp"

void train(attune::TrainingJournal<TrainerOf<2>, Sink>& journal) { (void)journal.update(1e-3f); }

// case: journaled_step_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
#include "journal.hpp"

void train(attune::TrainingJournal<TrainerOf<1>, Sink>& journal, const Model::Input& x,
           const Model::Output& y) {
  (void)journal.step(1, x, y, 1e-3f);
}

// case: journal_of_views
// error: attune::TrainingJournal: the input, target or mask is a view, whose address would be written; copy the numbers into a Tensor or an array, or journal the sequence by its number
#include "journal.hpp"

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 1}>;
using Mask = attune::AdditiveMask<float, 2, 2>;

void train(attune::TrainingJournal<attune::Trainer<Attention>, Sink>& journal,
           const attune::JournaledSequence<Attention::Input, Attention::Output, Mask>& sequence) {
  (void)journal.accumulate(sequence);
}

// case: journal_with_a_strange_program_unit
// error: attune::TrainingJournal: Sink::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes
#include "journal.hpp"

struct Strange : Sink {
  static constexpr std::uint32_t kProgramUnit = 12;
};

void begin(TrainerOf<1>& trainer, Strange& sink) { attune::TrainingJournal(trainer, sink).started(); }

// case: journal_with_a_strange_sink
// error: attune::TrainingJournal: a sink is called as sink(const char* bytes, std::size_t count)
#include "journal.hpp"

struct Strange {
  void write(const char* bytes, std::size_t count);
};

void begin(TrainerOf<1>& trainer, Strange& sink) { attune::TrainingJournal(trainer, sink).started(); }

// case: journaled_step_of_a_batch
// error: attune::TrainingJournal: step() is for a batch of one; take accumulate() and update(), which compute the same bits
#include "journal.hpp"

void train(TrainerOf<2>& trainer, Sink& sink, const TrainerOf<2>::BatchInput& x,
           const TrainerOf<2>::BatchTarget& y) {
  attune::TrainingJournal journal(trainer, sink);
  (void)journal.step(0, x, y, {});
}

// case: record_that_is_not_its_bytes
// error: attune::FlashStore: records are saved byte by byte and must be trivially copyable
#include "flash.hpp"

using Flash = FlashOf<4>;
struct Name {
  ~Name() { delete[] text; }
  char* text;
};

constexpr auto slots = attune::FlashStore<Flash, Name>::kSlots;

// case: references_as_a_record
// error: attune::FlashStore: a record is a pointer or a view, so its address would be saved; store the data
#include "flash.hpp"

using Flash = FlashOf<64>;
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
Flash flash;
attune::FlashStore<Flash, Model::ParametersOf<attune::TransposedReference, attune::Reference>> store(flash);

// case: working_weights_as_a_record
// error: attune::FlashStore: records are saved byte by byte and must be trivially copyable
#include "flash.hpp"

#include <attune/training/placement.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 3, .d_out = 2}>;
attune::Status save(attune::FlashStore<FlashOf<8>, attune::WorkingWeights<Layer>>& store,
                    attune::WorkingWeights<Layer>& weights) {
  return store.save(weights);
}

// case: trainer_as_a_record
// error: attune::FlashStore: a Trainer is not a record; store trainer.state(), of type Trainer::State
#include "flash.hpp"

using Flash = FlashOf<64>;
using Trainer = attune::Trainer<attune::Linear<attune::LinearShape{1, 2, 3}>>;
Flash flash;
attune::FlashStore<Flash, Trainer> store(flash);

// case: save_of_a_temporary_in_slices
// error: attune::FlashStore: a pass in slices uses its records until it ends, and this is a temporary; store it in a
#include "flash.hpp"

using Flash = FlashOf<4>;

auto begin(attune::FlashStore<Flash, int>& store) { return store.save_in_slices(3); }

// case: replay_memory_in_too_little_flash
// error: attune::FlashReplayMemory: the flash needs (kBlocks + 1) * kBlockPages pages; give it more pages, or store fewer examples
// error by gcc: pages = 2
// error by clang: (2 >=
#include "flash.hpp"

#include <attune/persistence/flash_replay_memory.hpp>

using Flash = FlashOf<2>;
using Features = attune::Tensor<float, 1, 32>;
constexpr auto slots = attune::FlashReplayMemory<Flash, Features, attune::ReplayShape{100, 10}>::kSlots;

// case: replay_of_features_into_a_journal
// error: attune::ReplayMemory: a journal has inputs of the model; store these, and replay from layer 0
#include "journal.hpp"

using Classifier = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 3, .d_out = 2}>;
attune::ReplayMemory<Classifier::Input, attune::ReplayShape{4, 2}> memory;
using Trainer = attune::Trainer<Classifier, attune::CrossEntropy<>>;
auto replay(attune::TrainingJournal<Trainer, Sink>& journal, attune::Rng& rng) {
  return memory.replay<1>(journal, 2, rng);
}

// case: replay_memory_of_doubles
// error: attune::ReplayMemory: examples are a Tensor of floats, the Input of a model or of one of its layers
#include <attune/persistence/replay_memory.hpp>

using Features = attune::Tensor<double, 1, 32>;
attune::ReplayMemory<Features, attune::ReplayShape{30, 10}> memory;

// case: replay_memory_of_ids
// error: attune::ReplayMemory: examples are a Tensor of floats, the Input of a model or of one of its layers
#include <array>

#include <attune/persistence/replay_memory.hpp>

attune::ReplayMemory<std::array<int, 8>, attune::ReplayShape{30, 10}> memory;

// case: replay_memory_that_cannot_be_balanced
// error: attune::ReplayMemory: kClassBalanced needs a capacity that is a multiple of num_classes
#include <attune/persistence/replay_memory.hpp>

using Features = attune::Tensor<float, 1, 32>;
constexpr int capacity = attune::ReplayMemory<Features, attune::ReplayShape{55, 10}>::kCapacity;
