// Handwritten digits, trained from scratch in floats and in integers: means of the parts of the test images
// that trainings of five seeds recognize, as examples/digits --seed 1 to 5.
#include <cstdio>
#include <memory>

#include "../../examples/digits/training.hpp"
#include "precisions.hpp"

namespace {

using namespace digits;
constexpr int kSeeds = 5;

template <class OfPlan>
bool print_mean(const char* precision) {
  int right = 0;
  const auto trainer = std::make_unique<attune::Trainer<Model, Loss, attune::AdamW, kBatch, OfPlan>>();
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    trainer->initialize(attune::XavierUniform{}, rng_of_parameters(seed));
    attune::Rng rng = rng_of_images(seed);
    Shuffle order(kTrainImages);
    Example example;
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < kBatch; ++i) {
        draw(rng, order, example);
        if (!trainer->accumulate(example.image, example.label).ok()) return false;
      }
      if (!trainer->update(options(step)).ok()) return false;
    }
    Model::Output logits;
    for (int i = 0; i < kTestImages; ++i) {
      unpack(kPackedTest[i], example.image);
      if (trainer->predict(example.image, logits) != attune::Status::kOk) return false;
      right += accuracy::largest(logits) == kTestLabels[i] - '0';
    }
  }
  std::printf("accuracy model=digits_%d precision=\"%s\" right=%.2f unit=%%\n", kWidth, precision,
              100.0 * right / (kSeeds * kTestImages));
  return true;
}

}  // namespace

int main() {
  return print_mean<attune::BySequence>("float") && print_mean<attune::Int8Training>("trained in integers")
             ? 0
             : 1;
}
