// Handwritten digits: trains as examples/digits in floats, and recognizes the test part in every precision.
#include <cstdio>
#include <memory>

#include "../../examples/digits/training.hpp"
#include "precisions.hpp"

int main() {
  using namespace digits;
  const auto trainer = std::make_unique<attune::Trainer<Model, Loss, attune::AdamW, kBatch>>();
  trainer->initialize(attune::XavierUniform{}, rng_of_parameters(1));
  attune::Rng rng = rng_of_images(1);
  Shuffle order(kTrainImages);
  Example example;
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      draw(rng, order, example);
      if (!trainer->accumulate(example.image, example.label).ok()) return 1;
    }
    if (!trainer->update(options(step)).ok()) return 1;
  }
  const auto scratch = std::make_unique<Model::InferenceScratch>();
  const auto print = [&](const char* name, const auto& weights, const auto& products) {
    int right = 0;
    Model::Output logits;
    for (int i = 0; i < kTestImages; ++i) {
      unpack(kPackedTest[i], example.image);
      attune::infer<Model>(weights, example.image, logits, *scratch, attune::NoMask{}, products);
      right += accuracy::largest(logits) == kTestLabels[i] - '0';
    }
    std::printf("accuracy model=digits precision=\"%s\" right=%.2f unit=%%\n", name,
                100.0 * right / kTestImages);
  };
  return accuracy::for_each_precision<Model>(trainer->parameters(), print) ? 0 : 1;
}
