// Training steps against the processor's peak, a batch of tiny sequences against a BLAS, and the stack that a
// step takes.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <port.hpp>

#include "peak.hpp"
#include "timing.hpp"
#include "training_step.hpp"

#if ATTUNE_BENCH_OPENBLAS
#include "cblas_attention.hpp"
#endif

namespace {

template <attune::AttentionShape shape>
bench::TrainingStep<shape> training;

std::string key(attune::AttentionShape shape, const char* what) {
  return "step." + std::to_string(shape.seq_len) + "x" + std::to_string(shape.d_model) + "x" +
         std::to_string(shape.num_heads) + "." + what;
}

template <attune::AttentionShape shape>
[[gnu::noinline]] void measure_stack() {
  port::paint_stack();
  training<shape>.step();
  const std::size_t bytes = port::stack_high_water();
  bench::figure(key(shape, "stack_bytes"), static_cast<double>(bytes));
}

template <attune::AttentionShape shape>
[[gnu::noinline]] void measure_peak_fraction() {
  auto& step = training<shape>;
  step.initialise();
  bench::Race race;
  const int peak = race.add([] { bench::peak_work(); });
  const int ours = race.add([&step] { step.step(); });
  race.run();
  bench::figure(key(shape, "peak_fraction"), race.ratio(peak, ours) * step.kStepFlops / bench::kPeakFlops);
}

#if ATTUNE_BENCH_OPENBLAS

constexpr int kBatch = 1024;
constexpr attune::AttentionShape kTiny{.seq_len = 8, .d_model = 4, .num_heads = 1};
using BatchTrainer =
    attune::Trainer<attune::MultiHeadAttention<kTiny>, attune::MeanSquaredError, attune::AdamW, kBatch>;
BatchTrainer trainer;
BatchTrainer::BatchInput inputs;
BatchTrainer::BatchTarget targets;

bool agree(float ours, float theirs, float tolerance) { return std::fabs(ours - theirs) <= tolerance; }

// Both start from the same parameters; after a step their losses and parameters must still be the same. The
// key bias is left out: its gradient is zero in theory, so the optimiser steps along rounding errors.
void check_same_step(bench::CblasAttention& blas, float learning_rate) {
  const float our_loss = trainer.step(inputs, targets, {.learning_rate = learning_rate});
  const float their_loss = blas.step(inputs.data(), targets.data(), learning_rate);
  auto ours = trainer.parameters();
  auto theirs = ours;
  std::memcpy(&theirs, blas.parameters().data(), sizeof theirs);
  ours.key.bias = theirs.key.bias;
  bool same = agree(our_loss, their_loss, 1e-4f);
  attune::for_each_tensor(
      [&same, learning_rate](const attune::TensorPath&, const auto& left, const auto& right) {
        for (int i = 0; i < left.size; ++i)
          same = same && agree(left.values[i], right.values[i], 0.1f * learning_rate);
      },
      std::as_const(ours), std::as_const(theirs));
  if (!same) {
    std::fprintf(stderr, "steps: the batch step and its cblas version disagree (losses %g and %g)\n",
                 static_cast<double>(our_loss), static_cast<double>(their_loss));
    std::exit(1);
  }
}

[[gnu::noinline]] void measure_batch() {
  constexpr float kLearningRate = 1e-3f;
  attune::Rng rng(1);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  trainer.initialise(attune::XavierUniform{}, rng);
  bench::CblasAttention blas(kBatch, kTiny.seq_len, kTiny.d_model, kTiny.num_heads);
  std::memcpy(blas.parameters().data(), &trainer.parameters(), sizeof trainer.parameters());
  check_same_step(blas, kLearningRate);

  bench::Race race;
  const int ours = race.add([] { (void)trainer.step(inputs, targets, {.learning_rate = kLearningRate}); });
  const int theirs = race.add([&blas] { blas.step(inputs.data(), targets.data(), kLearningRate); });
  race.run();
  bench::figure("step.batch1024.8x4x1.vs_openblas", race.ratio(theirs, ours));
}

#endif

template <std::size_t... index>
void measure_shapes(std::index_sequence<index...>) {
  (measure_peak_fraction<bench::kShapes[index]>(), ...);
}

}  // namespace

int main() {
  measure_stack<bench::kShapes.back()>();
  measure_shapes(std::make_index_sequence<bench::kShapes.size()>());
#if ATTUNE_BENCH_OPENBLAS
  measure_batch();
#endif
}
