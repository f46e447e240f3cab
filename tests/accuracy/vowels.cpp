// Vowels of the file that is named: trains as examples/vowels in floats, and tells the speakers of the test
// part apart in every precision.
#include <memory>

#include "../../examples/vowels/utterances.hpp"
#include "precisions.hpp"

int main(int, char** arguments) {
  using namespace vowels;
  Part training_part{}, test_part{};
  float scale = 0;
  if (!load(arguments[1], training_part, test_part, scale)) return 2;
  const auto trainer = std::make_unique<attune::Trainer<Model, Loss, attune::AdamW, kBatch>>();
  trainer->initialize(attune::XavierUniform{}, attune::Rng(1));
  attune::Rng rng(2);
  Example example;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      take(training_part, scale, static_cast<int>(rng.next() % static_cast<unsigned>(training_part.count)),
           example);
      if (!trainer->accumulate(example.tokens, example.speaker, example.mask).ok()) return 1;
    }
    if (!trainer->update({.learning_rate = kLearningRate(static_cast<std::uint32_t>(step))}).ok()) return 1;
  }
  const auto scratch = std::make_unique<Model::InferenceScratch>();
  const auto print = [&](const char* name, const auto& weights, const auto& products) {
    int right = 0;
    Model::Output logits;
    for (int i = 0; i < test_part.count; ++i) {
      take(test_part, scale, i, example);
      attune::infer<Model>(weights, example.tokens, logits, *scratch, example.mask, products);
      right += accuracy::largest(logits) == example.speaker[0];
    }
    std::printf("accuracy model=vowels precision=\"%s\" right=%.2f unit=%%\n", name,
                100.0 * right / test_part.count);
  };
  return accuracy::for_each_precision<Model>(trainer->parameters(), print) ? 0 : 1;
}
