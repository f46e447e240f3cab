// The same training on several machines, to the same bits: examples/run digits --ranks N starts N ranks on
// this one.
//
//   mpirun -n 4 --hostfile HOSTS digits_8x16x2_ranks      # by hand, the same program on all of them
//
// Options are those of digits.cpp, in the environment (ATTUNE_ARGUMENTS="--steps 600"), and
//
//   --threads N     of each rank; without it the machine's, shared out among all ranks
//   --timeout N  seconds for another rank, which then hangs; without it half an hour
//   ATTUNE_RUN=FILE   in the environment: rank 0 keeps the run there, and it goes on from there
#include <algorithm>
#include <cstdlib>
#include <memory>

#include <arguments.hpp>
#include <attune/host/distributed_trainer.hpp>
#include <attune/host/mpi.hpp>
#include <attune/host/training_run.hpp>

#include "evaluation.hpp"
#include "training.hpp"

namespace {

using namespace digits;
using Distributed = attune::host::DistributedTrainer<Model, Loss, attune::AdamW, kBatch, Plan>;

struct Batch {
  Distributed::BatchInput images;
  Distributed::BatchTarget labels;
};

/// Where the training is in its images: kept with the run.
struct Source {
  attune::Rng rng;
  Shuffle order;
  // Every rank draws the whole batch: the generator goes on by what an image takes.
  void draw(Batch& batch) {
    Example example;
    for (int i = 0; i < kBatch; ++i) {
      digits::draw(rng, order, example);
      std::copy_n(example.image.values, Image::size, batch.images.values + i * Image::size);
      batch.labels[static_cast<std::size_t>(i)] = example.label[0];
    }
  }
};

}  // namespace

int main() {
  const int steps = std::min(port::argument("--steps", kSteps), kSteps);
  const int images = std::min(port::argument("--images", kTestImages), kTestImages);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  const char* const file = std::getenv("ATTUNE_RUN");

  attune::host::MpiRanks ranks({.longest_wait = std::chrono::seconds(port::argument("--timeout", 30 * 60))});
  const bool speaks = ranks.rank() == 0;
  Distributed trainer(
      ranks, {.threads = port::argument("--threads",
                                        std::max(attune::host::available_threads() / ranks.size(), 1))});
  trainer.initialize(attune::XavierUniform{}, rng_of_parameters(seed));
  Source source{rng_of_images(seed), Shuffle(kTrainImages - held_out(0))};
  const auto batch = std::make_unique<Batch>();
  if (speaks) {
    port::print("digits on ", ranks.size(), " ranks of ", trainer.threads(), " threads, d_model ", kWidth,
                ", ", kParameters, " parameters; ", steps, " steps of ", kBatch, " images\n");
  }
  attune::host::TrainingOptions options{.steps = steps, .write = nullptr};
  if (speaks) {
    options.terminal = port::is_terminal();
    options.write = [](std::string_view text) { port::write(text.data(), text.size()); };
  }
  if (file != nullptr) options.file = file;
  options.beside = std::as_writable_bytes(std::span(&source, 1));
  const auto run = attune::host::run_training(trainer, options, [&](int step) {
    source.draw(*batch);
    return trainer.step(batch->images, batch->labels, digits::options(step));
  });
  if (run.end != attune::host::TrainingEnd::kAllSteps) return 1;

  const auto hashes = attune::host::of_all_ranks(ranks, attune::hash_bits(trainer.parameters()));
  if (!speaks) return 0;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (hashes[rank] == hashes[0]) continue;
    port::print("rank ", rank, " ended with other parameters, ", port::hex8(hashes[rank]), '\n');
    return 1;
  }
  Image image;
  Model::Output logits;
  Evaluation evaluation{};
  evaluate(
      images, image, logits, evaluation,
      [&](const Image& x, Model::Output& y) { return trainer.predict(x, y); }, [](int) {});
  print(evaluation);
  print_result(evaluation);
  port::print(" steps=", run.steps, " ranks=", ranks.size(), " threads=", trainer.threads());
  print_result_end(evaluation.instructions, hashes[0], kMemory.total(), port::stack_high_water(),
                   port::heap_calls(), static_cast<std::uint64_t>(run.seconds * 1e6));
  return 0;
}
