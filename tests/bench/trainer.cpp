// A firmware that trains and does nothing else: its size is the size of training. With ATTUNE_BENCH_STACK=1
// it also says how much stack that took.
#include <attune/attune.hpp>
#include <port.hpp>

#if ATTUNE_BENCH_STACK
#include <console.hpp>
#endif

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 16, .d_model = 32, .num_heads = 4};
constexpr int kBatch = 4;
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;

// Where a driver would put the sequence that it has received, and what should come out for it.
Trainer trainer;
Layer::Input input;
Layer::Output target;

[[gnu::noinline]] bool train() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    if (!trainer.accumulate(input, target).ok()) return false;
  }
  static constexpr attune::AdamW::Options kOptions{.learning_rate = 3e-3f};
  return trainer.update(kOptions).ok();
}

#if ATTUNE_BENCH_STACK
[[gnu::noinline]] void report(std::size_t bytes) { port::print("trainer.16x32x4.stack_bytes ", bytes, '\n'); }
#endif

}  // namespace

int main() {
#if ATTUNE_BENCH_STACK
  port::paint_stack();
  const bool trained = train();
  report(port::stack_high_water());
#else
  const bool trained = train();
#endif
  return trained ? 0 : 1;
}
