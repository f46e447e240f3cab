// A token of a stream on the host: how many times faster it is than plain loops over the same parameters.
//   tests/bench/run --stream
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hand_written.hpp"
#include "stories.hpp"
#include "timing.hpp"

namespace {

struct Contenders {
  bench::Stories::Parameters parameters;
  bench::StoriesCache cache;
  bench::StoriesCache::Scratch<> scratch;
  attune::Tensor<float, 1, bench::kVocabulary> logits, plain_logits;

  std::vector<std::vector<float>> tensors;  // [out, in]
  std::vector<std::vector<float>> kept;     // keys and values of every layer
  std::vector<bench::HandWrittenLayer> layers;
  bench::HandWritten plain;

  Contenders() {
    attune::Rng rng(1);
    attune::initialize(parameters, attune::XavierUniform{}, rng);
    attune::for_each_tensor(
        [this](const attune::TensorPath&, const auto& tensor) {
          std::vector<float>& copy = tensors.emplace_back(tensor.values, tensor.values + tensor.size);
          if (tensors.size() == 1) return;  // the embedding's rows are what they are
          for (int i = 0; i < tensor.size; ++i) {
            const int row = i / tensor.cols, col = i % tensor.cols;
            copy[static_cast<std::size_t>(col * tensor.rows + row)] = tensor.values[i];
          }
        },
        parameters);
    const float* next[9];
    auto tensor = tensors.begin() + 1;
    kept.resize(2 * bench::kLayers,
                std::vector<float>(std::size_t{bench::kLength * bench::kKvHeads * bench::kHeadWidth}));
    for (int layer = 0; layer < bench::kLayers; ++layer) {
      for (const float*& data : next) data = (tensor++)->data();
      const auto index = static_cast<std::size_t>(2 * layer);
      layers.push_back({next[0], next[1], next[2], next[3], next[4], next[5], next[6], next[7], next[8],
                        kept[index].data(), kept[index + 1].data()});
    }
    plain = {tensors.front().data(), tensor->data(), layers.data()};
  }

  void step(int token) { (void)bench::Stories::step(parameters, token, logits, cache, scratch); }
  void plain_step(int token, int position) {
    bench::hand_written_token(plain, token, position, plain_logits.data());
  }
  // A contender whose result differs has no speed.
  void expect_agreement() const {
    for (int i = 0; i < bench::kVocabulary; ++i) {
      if (!(std::fabs(logits.values[i] - plain_logits.values[i]) <= 1e-4f)) {
        std::fprintf(stderr, "stream: contenders disagree\n");
        std::exit(1);
      }
    }
  }
};

}  // namespace

int main() {
  const auto contenders = std::make_unique<Contenders>();
  contenders->cache = {};
  int position = 0;
  for (const int last : bench::kPositions) {
    for (; position <= last; ++position) {
      contenders->step(position * 7 % bench::kVocabulary);
      contenders->plain_step(position * 7 % bench::kVocabulary, position);
    }
    contenders->expect_agreement();
    bench::Race race;
    const int ours = race.add([&] {
      contenders->cache.tokens = static_cast<std::uint64_t>(last);
      contenders->step(1);
    });
    const int plain = race.add([&] { contenders->plain_step(1, last); });
    race.run();
    contenders->expect_agreement();
    bench::figure("stream." + std::to_string(last) + ".vs_plain_loops", race.ratio(plain, ours));
  }
}
