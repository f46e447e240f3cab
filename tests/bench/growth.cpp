// How time and RAM of a training grow with the number of tokens and of layers: of an encoder that keeps for
// backward what it computes, and of one that computes attention weights and layers once more.
//   tests/bench/run --growth
//   ATTUNE_BENCH_QUICK   few sizes, to see that it works
#include <memory>
#include <string>
#include <utility>

#include <attune/attune.hpp>

#include "timing.hpp"

namespace {

constexpr int kTokens = 64, kLayers = 2;  // of the one while the other grows
#if ATTUNE_BENCH_QUICK
using Lengths = std::integer_sequence<int, 8>;
using Depths = std::integer_sequence<int, 1>;
#else
using Lengths = std::integer_sequence<int, 16, 32, 64, 128, 256, 512>;
using Depths = std::integer_sequence<int, 1, 2, 4, 8, 12>;
#endif

template <int tokens, int layers, bool kept>
struct Encoder {
  using Layer = attune::EncoderLayer<attune::EncoderLayerShape{
      .attention = {.seq_len = tokens, .d_model = 64, .num_heads = 4, .keep_weights = kept}, .d_ff = 128}>;
  using Repeated = std::conditional_t<kept, Layer, attune::Checkpointed<Layer>>;
  using Trainer = attune::Trainer<attune::Repeat<layers, Repeated>>;
};

struct Measured {
  std::string key;
  int contender;
  std::size_t bytes;
};

template <class Trainer>
Measured add(bench::Race& race, const std::string& key) {
  struct Data {
    Trainer trainer;
    typename Trainer::BatchInput x;
    typename Trainer::BatchTarget target;
  };
  const auto data = std::make_shared<Data>();
  attune::Rng rng(1);
  data->trainer.initialize(attune::XavierUniform{}, rng);
  for (float& value : data->x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : data->target.values) value = rng.uniform(-1.0f, 1.0f);
  const int contender =
      race.add([data] { (void)data->trainer.step(data->x, data->target, {.learning_rate = 1e-3f}); });
  return {key, contender, Trainer::memory().object()};
}

template <int tokens, int layers>
void add_both(bench::Race& race, const std::string& key, std::vector<Measured>& all) {
  all.push_back(add<typename Encoder<tokens, layers, true>::Trainer>(race, key + ".kept"));
  all.push_back(add<typename Encoder<tokens, layers, false>::Trainer>(race, key + ".recomputed"));
}

template <int... tokens, int... layers>
void measure(std::integer_sequence<int, tokens...>, std::integer_sequence<int, layers...>) {
  bench::Race race;
  std::vector<Measured> all;
  (add_both<tokens, kLayers>(race, "growth.seq_len." + std::to_string(tokens), all), ...);
  (add_both<kTokens, layers>(race, "growth.layers." + std::to_string(layers), all), ...);
  race.run();
  for (const Measured& it : all) {
    bench::figure(it.key + ".milliseconds", race.seconds(it.contender) * 1e3);
    bench::figure(it.key + ".bytes", static_cast<double>(it.bytes));
  }
}

}  // namespace

int main() { measure(Lengths{}, Depths{}); }
