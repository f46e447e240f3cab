// Training steps that compute once more what others keep, or keep it in 8 bits: how many times longer they
// take, and their RAM.
//   tests/bench/run --recompute
#include <memory>
#include <string>

#include <attune/attune.hpp>

#include "timing.hpp"

namespace {

template <class Kept, class Again, class Mask>
void measure(const std::string& name, const Mask& mask) {
  using KeptTrainer = attune::Trainer<Kept>;
  using AgainTrainer = attune::Trainer<Again>;
  struct Data {
    KeptTrainer kept;
    AgainTrainer again;
    typename KeptTrainer::BatchInput x;
    typename KeptTrainer::BatchTarget target;
  };
  const auto data = std::make_unique<Data>();
  attune::Rng rng(1);
  for (float& value : data->x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : data->target.values) value = rng.uniform(-1.0f, 1.0f);
  data->kept.initialize(attune::XavierUniform{}, attune::Rng(rng));
  data->again.initialize(attune::XavierUniform{}, attune::Rng(rng));
  bench::Race race;
  const auto add = [&](auto& trainer) {
    return race.add([&] {
      (void)trainer.step(data->x, data->target, {.learning_rate = 1e-3f}, attune::NoClipping{}, mask);
    });
  };
  const int kept = add(data->kept), again = add(data->again);
  race.run();
  bench::figure(name + ".time", race.ratio(again, kept));
  bench::figure(name + ".kept_bytes", static_cast<double>(KeptTrainer::memory().object()));
  bench::figure(name + ".recomputed_bytes", static_cast<double>(AgainTrainer::memory().object()));
}

template <int seq_len, int d_model, int num_heads, class Mask = attune::NoMask>
void measure_attention(const std::string& name) {
  constexpr attune::AttentionShape kKept{.seq_len = seq_len, .d_model = d_model, .num_heads = num_heads};
  constexpr attune::AttentionShape kAgain{
      .seq_len = seq_len, .d_model = d_model, .num_heads = num_heads, .keep_weights = false};
  measure<attune::MultiHeadAttention<kKept>, attune::MultiHeadAttention<kAgain>>("recompute." + name, Mask{});
}

constexpr attune::EncoderLayerShape kKept{.attention = {.seq_len = 64, .d_model = 32, .num_heads = 4},
                                          .d_ff = 64};
constexpr attune::EncoderLayerShape kAgain{
    .attention = {.seq_len = 64, .d_model = 32, .num_heads = 4, .keep_weights = false}, .d_ff = 64};

}  // namespace

int main() {
  measure_attention<16, 32, 4>("16x32x4");
  measure_attention<64, 32, 4>("64x32x4");
  measure_attention<256, 64, 4>("256x64x4");
  measure_attention<512, 32, 4>("512x32x4");
  measure_attention<512, 32, 4, attune::CausalMask>("512x32x4.causal");
  using Four = attune::Repeat<4, attune::EncoderLayer<kKept>>;
  using attune::Checkpointed, attune::EncoderLayer, attune::Repeat;
  measure<Four, Repeat<4, EncoderLayer<kAgain>>>("recompute.encoder_64x32x4.weights", attune::NoMask{});
  measure<Four, Repeat<4, Checkpointed<EncoderLayer<kKept>>>>("recompute.encoder_64x32x4.layers",
                                                              attune::NoMask{});
  measure<Four, Repeat<4, Checkpointed<EncoderLayer<kAgain>>>>("recompute.encoder_64x32x4.both",
                                                               attune::NoMask{});
  using attune::QuantizedTape;
  measure<Four, QuantizedTape<Repeat<4, EncoderLayer<kKept>>>>("recompute.encoder_64x32x4.packed",
                                                               attune::NoMask{});
  measure<Four, QuantizedTape<Repeat<4, EncoderLayer<kAgain>>>>("recompute.encoder_64x32x4.packed_weights",
                                                                attune::NoMask{});
}
