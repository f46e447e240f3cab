// 300 steps of training with everything that the order of a sum or the rounding of a product can change:
// masks, clipping, a schedule, AdamW. Prints a hash of the parameters, which is one number on every target
// within an arithmetic policy, and fails when it is another.
#include <attune/attune.hpp>

#include "console.hpp"

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 8, .d_model = 8, .num_heads = 2};
constexpr int kBatch = 2;
constexpr std::uint32_t kSteps = 300;
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;

#ifdef ATTUNE_GOLDEN_FUSED
static_assert(ATTUNE_FUSED, "golden_fused is built with the other arithmetic");
#endif
constexpr std::uint32_t kExpected = ATTUNE_FUSED ? 0xe3774651u : 0xff72e4dbu;

Trainer trainer;
Trainer::BatchInput inputs;
Trainer::BatchTarget targets;
attune::SelfTest self_test;

}  // namespace

int main() {
  attune::Rng rng(7);
  trainer.initialize(attune::XavierUniform{},
                     attune::Rng(rng));  // a copy: the recorded hash has its numbers twice
  const attune::CosineSchedule schedule{.peak = 0.01f, .total_steps = kSteps, .warmup_steps = 20};
  float loss = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    // Every row is to become the mean of the rows before it, which causal attention can learn.
    for (float& value : inputs.values) value = rng.uniform(-2.0f, 2.0f);
    for (int i = 0; i < inputs.rows; ++i) {
      for (int j = 0; j < inputs.cols; ++j) {
        float sum = 0;
        const int first = i / kShape.seq_len * kShape.seq_len;
        for (int k = first; k <= i; ++k) sum += inputs(k, j);
        targets(i, j) = sum / static_cast<float>(i - first + 1);
      }
    }
    const auto result = trainer.step(inputs, targets, {.learning_rate = schedule(step)},
                                     attune::GradientClipping{0.5f}, attune::CausalMask{});
    if (!result.ok()) return 1;
    loss = result.loss;
  }
  const std::uint32_t hash = attune::hash_bits(trainer.parameters());
  const attune::Status status = self_test.run();
  port::print("golden steps=", kSteps, " loss=", port::fixed(loss, 6), " parameters_hash=", port::hex8(hash),
              " self_test=", attune::message(status), '\n');
  return hash == kExpected && status == attune::Status::kOk ? 0 : 1;
}
