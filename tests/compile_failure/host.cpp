// Misuse of attune/host that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: parallel_trainer_in_lockstep
// error: attune::host::ParallelTrainer: the plan must be BySequence or Int8Training
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/host/parallel_trainer.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::host::ParallelTrainer<Layer, attune::MeanSquaredError, attune::AdamW, 17, attune::Lockstep> trainer;

// case: parallel_trainer_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
#include <attune/host/parallel_trainer.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
using Trainer = attune::host::ParallelTrainer<Layer>;
bool step(Trainer& trainer, const Layer::Input& x) { return trainer.step(x, x, 1e-3f).ok(); }

// case: replay_of_a_view_without_its_owner
// error: attune::Replay: a Sequence with a view has no default; load(std::uint32_t number, std::unique_ptr<Sequence>&) of the Setup makes it, and returns a Status
#include <attune/host/replay.hpp>

struct Setup {
  using Attention =
      attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 2, .d_model = 4, .num_heads = 1}>;
  using Trainer = attune::Trainer<Attention>;
  using Sequence =
      attune::JournaledSequence<Attention::Input, Attention::Output, attune::AdditiveMask<float, 2, 2>>;
  static void start(Trainer& trainer, std::uint32_t number);
  static attune::Status load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }

// case: replay_of_data_without_a_status
// error: attune::Replay: load(std::uint32_t number, Sequence&) of the Setup returns a Status
#include "journal.hpp"

#include <attune/host/replay.hpp>

struct Setup {
  using Trainer = TrainerOf<1>;
  using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;
  static void start(Trainer& trainer, std::uint32_t number);
  static void load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }

// case: replay_without_a_start
// error: attune::Replay: the Setup has no start(Trainer&, std::uint32_t number)
#include "journal.hpp"

#include <attune/host/replay.hpp>

struct Setup {
  using Trainer = TrainerOf<1>;
  using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;
  static attune::Status load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }

// case: threads_with_placed_gradients
// error: attune::host::ParallelTrainer: the plan must be BySequence or Int8Training
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/host/parallel_trainer.hpp>

using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::PlacedGradients<Model> gradients;
attune::host::ParallelTrainer<Model, attune::MeanSquaredError, attune::AdamW, 2,
                              attune::GradientsIn<gradients>>
    trainer(1);
