// Text: trains the model of examples/stream, and finds its perplexity on stretches of the text that it has
// not seen, in every precision; last token by token, with a cache in 8 bits.
//   stream TEXT STEPS
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "../../examples/stream/learn_vocabulary.hpp"
#include "../../examples/stream/training.hpp"
#include "precisions.hpp"

namespace {

using namespace stream;

// Of windows that were held out; predict(x, logits) is the model.
template <class Predict>
void print_perplexity(const char* name, const std::vector<int>& ids, const Predict& predict) {
  const auto logits = std::make_unique<Model::Output>();
  double nats = 0;
  int windows = 0;
  for (std::size_t first = 0; first + kTokens < ids.size(); first += kTokens) {
    if (!Corpus::held_out(first) || !Corpus::held_out(first + kTokens)) continue;
    const attune::Ids<kTokens> x(&ids[first]), y(&ids[first + 1]);
    predict(x, *logits);
    nats += static_cast<double>(attune::CrossEntropy<>::forward(*logits, y, *logits).loss);
    ++windows;
  }
  std::printf("accuracy model=stream precision=\"%s\" perplexity=%.3f unit=perplexity\n", name,
              std::exp(nats / windows));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const int steps = std::atoi(argv[2]);
  const std::vector<Token> tokens = learn_vocabulary(text, kVocabulary);
  if (tokens.size() != kVocabulary) return 1;
  const std::vector<int> ids = encode_all(text, Vocabulary{tokens});
  if (ids.size() < Corpus::kMin) return 1;
  const auto training = std::make_unique<Training>(Corpus{ids}, steps);
  for (int step = 0; step < steps; ++step) {
    if (!training->step(step).ok()) return 1;
  }

  const auto scratch = std::make_unique<Model::InferenceScratch>();
  bool read = true;
  const auto in_one_go = [&](const char* name, const auto& weights, const auto& products) {
    print_perplexity(name, ids, [&](const auto& x, auto& y) {
      const auto status = attune::infer<Model>(weights, x, y, *scratch, attune::CausalMask{}, products);
      read = read && status == attune::Status::kOk;
    });
  };
  if (!accuracy::for_each_precision<Model>(training->parameters(), in_one_go)) return 1;

  using Cache = attune::KeyValueCache<Model, attune::CacheShape{.capacity = kTokens,
                                                                .precision = attune::CachePrecision::kInt8}>;
  const auto cache = std::make_unique<Cache>();
  const auto of_token = std::make_unique<Cache::Scratch<>>();
  const auto packed = std::make_unique<Model::ParametersOf<attune::PackedInt8Weights, attune::Tensor>>();
  if (attune::quantize(training->parameters(), *packed) != attune::Status::kOk) return 1;
  print_perplexity("W8A8, attention, cache", ids, [&](const auto& x, auto& y) {
    cache->reset();
    for (int t = 0; t < kTokens; ++t) {
      const auto status = Model::step(*packed, attune::Ids<1>(x.data() + t), view(y).template rows_at<1>(t),
                                      *cache, *of_token);
      read = read && status == attune::Status::kOk;
    }
  });
  return read ? 0 : 1;
}
