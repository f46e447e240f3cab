// A firmware that trains an encoder layer of 99 tokens, and with ATTUNE_BENCH_SHAPES=2 a second one, of other
// widths, as well: what its size grows by is what one more shape of a layer takes of flash.
#include <attune/attune.hpp>

namespace {

template <int d_model>
using Layer = attune::EncoderLayer<{.attention = {.seq_len = 99, .d_model = d_model, .num_heads = 4},
                                    .d_ff = 2 * d_model,
                                    .activation = attune::Activation::kGelu,
                                    .norm = attune::NormPlacement::kBefore}>;

template <int d_model>
[[gnu::noinline]] bool train() {
  static attune::Trainer<Layer<d_model>, attune::MeanSquaredError> trainer;
  static typename Layer<d_model>::Input input;
  static typename Layer<d_model>::Output target;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  return trainer.step(input, target, {.learning_rate = 3e-3f}).ok();
}

}  // namespace

int main() {
#if ATTUNE_BENCH_SHAPES == 2
  if (!train<48>()) return 1;
#endif
  return train<32>() ? 0 : 1;
}
