// Batches on the host: tiny sequences in lockstep, against going one by one and against a BLAS; and what
// stacking the sequences of a batch would bring the projections of larger shapes.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <attune/attune.hpp>

#include "timing.hpp"

#if ATTUNE_BENCH_OPENBLAS
#include "cblas_attention.hpp"
#endif

namespace {

constexpr int kBatch = 1024;
constexpr attune::AttentionShape kTiny{.seq_len = 8, .d_model = 4, .num_heads = 1};
constexpr attune::AdamW::Options kOptions{.learning_rate = 1e-3f};
constexpr attune::AdamW::Options kStill{.learning_rate =
                                            1e-12f};  // timed: all contenders stay at the same parameters

template <class Plan>
using Trainer =
    attune::Trainer<attune::MultiHeadAttention<kTiny>, attune::MeanSquaredError, attune::AdamW, kBatch, Plan>;
Trainer<attune::Lockstep> lockstep;
Trainer<attune::Streaming> streaming;
Trainer<attune::Lockstep>::BatchInput inputs;
Trainer<attune::Lockstep>::BatchTarget targets;

[[noreturn]] void disagree(const char* with) {
  std::fprintf(stderr, "batches: a step in lockstep and one %s disagree\n", with);
  std::exit(1);
}

#if ATTUNE_BENCH_OPENBLAS

bool agree(float ours, float theirs, float tolerance) { return std::fabs(ours - theirs) <= tolerance; }

// Both start from the same parameters; after a step their losses and parameters must still be the same. The
// key bias is left out: its gradient is zero in theory, so the optimiser steps along rounding errors.
void check_same_step(bench::CblasAttention& blas) {
  lockstep.load(lockstep.parameters());
  std::memcpy(blas.parameters().data(), &lockstep.parameters(), sizeof lockstep.parameters());
  bool same = agree(lockstep.step(inputs, targets, kOptions).loss,
                    blas.step(inputs.data(), targets.data(), kOptions.learning_rate), 1e-4f);
  auto ours = lockstep.parameters();
  auto theirs = ours;
  std::memcpy(&theirs, blas.parameters().data(), sizeof theirs);
  ours.key.bias = theirs.key.bias;
  attune::for_each_tensor(
      [&same](const attune::TensorPath&, const auto& left, const auto& right) {
        for (int i = 0; i < left.size; ++i)
          same = same && agree(left.values[i], right.values[i], 0.1f * kOptions.learning_rate);
      },
      std::as_const(ours), std::as_const(theirs));
  if (!same) disagree("with cblas");
}

#endif

void measure_steps() {
  attune::Rng rng(1);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  lockstep.initialise(attune::XavierUniform{}, attune::Rng(rng));
  streaming.initialise(attune::XavierUniform{}, attune::Rng(rng));
  (void)lockstep.step(inputs, targets, kOptions);
  (void)streaming.step(inputs, targets, kOptions);
  if (attune::hash(lockstep.parameters()) != attune::hash(streaming.parameters())) disagree("one by one");

#if ATTUNE_BENCH_OPENBLAS
  bench::CblasAttention blas(kBatch, kTiny.seq_len, kTiny.d_model, kTiny.num_heads);
  check_same_step(blas);
#endif

  bench::Race race;
  const int together = race.add([] { (void)lockstep.step(inputs, targets, kStill); });
  const int one_by_one = race.add([] { (void)streaming.step(inputs, targets, kStill); });
#if ATTUNE_BENCH_OPENBLAS
  const int theirs = race.add([&blas] { blas.step(inputs.data(), targets.data(), kStill.learning_rate); });
#endif
  race.run();
  bench::figure("step.batch1024.8x4x1.vs_streaming", race.ratio(one_by_one, together));
#if ATTUNE_BENCH_OPENBLAS
  bench::figure("step.batch1024.8x4x1.vs_openblas", race.ratio(theirs, together));
#endif
}

// Where rows fill packets by themselves, lockstep has only its larger working set.
template <attune::AttentionShape shape, int batch>
void measure_lockstep() {
  using Layer = attune::MultiHeadAttention<shape>;
  static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, batch, attune::Lockstep> together;
  static attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, batch, attune::Streaming> one_by_one;
  static typename decltype(together)::BatchInput x;
  static typename decltype(together)::BatchTarget target;
  attune::Rng rng(1);
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : target.values) value = rng.uniform(-1.0f, 1.0f);
  together.initialise(attune::XavierUniform{}, attune::Rng(rng));
  one_by_one.initialise(attune::XavierUniform{}, attune::Rng(rng));
  bench::Race race;
  const int lanes = race.add([] { (void)together.step(x, target, kStill); });
  const int streamed = race.add([] { (void)one_by_one.step(x, target, kStill); });
  race.run();
  bench::figure("step.batch" + std::to_string(batch) + "." + std::to_string(shape.seq_len) + "x" +
                    std::to_string(shape.d_model) + "x" + std::to_string(shape.num_heads) + ".vs_streaming",
                race.ratio(streamed, lanes));
}

// X·W + b of `batch` sequences as one product, against one product a sequence.
template <int seq_len, int d_model, int batch>
void measure_stacking() {
  static attune::Tensor<float, batch * seq_len, d_model> x, y;
  static attune::Tensor<float, d_model, d_model> weight;
  static attune::Tensor<float, 1, d_model> bias;
  const attune::kernels::AddBias<float> add_bias{bias.data()};
  bench::Race race;
  const int stacked = race.add([&] {
    attune::kernels::product(attune::view(std::as_const(x)), attune::view(std::as_const(weight)),
                             attune::view(y), add_bias);
  });
  const int one_by_one = race.add([&] {
    for (int row = 0; row < batch * seq_len; row += seq_len) {
      attune::kernels::product(attune::view(std::as_const(x)).template rows_at<seq_len>(row),
                               attune::view(std::as_const(weight)),
                               attune::view(y).template rows_at<seq_len>(row), add_bias);
    }
  });
  race.run();
  bench::figure("projection." + std::to_string(seq_len) + "x" + std::to_string(d_model) + ".batch" +
                    std::to_string(batch) + ".stacked_vs_streaming",
                race.ratio(one_by_one, stacked));
}

}  // namespace

int main() {
  measure_steps();
  measure_lockstep<attune::AttentionShape{.seq_len = 8, .d_model = 16, .num_heads = 2}, 256>();
  measure_stacking<8, 16, 32>();
  measure_stacking<16, 32, 32>();
  measure_stacking<32, 64, 16>();
  measure_stacking<64, 64, 16>();
  measure_stacking<128, 128, 8>();
  measure_stacking<64, 512, 8>();
}
