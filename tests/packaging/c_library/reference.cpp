// The calls of main.c in C++.
#include <weights.hpp>
#include <weights_in_8_bits.hpp>

#include "model.hpp"

extern "C" void print_bits(const char* name, const float* numbers, int count);

namespace {

using namespace small;
constexpr const auto& kWeights = attune::kInFlash<Names, weights>;
constexpr const auto& kQuantized = attune::kInFlash<Names, weights_in_8_bits>;
Model::Input x, other;

void predict(const char* name, auto& trainer) {
  static Model::Output y;
  if (trainer.predict(x, y) == attune::Status::kOk) print_bits(name, y.values, Model::Output::size);
}

using Loss = attune::CrossEntropy<>;
attune::Trainer<attune::Adapted<Model, kWeights, attune::LowRank{.rank = 2}>, Loss, attune::AdamW, 2> tuned;
attune::Trainer<Model, Loss, attune::Sgd<>> copied;
attune::Trainer<attune::BiasesAndNorms<Model, kWeights>, Loss> biases;
attune::Trainer<attune::LinearProbe<Model, kQuantized>, Loss, attune::Sgd<>> head;
attune::Trainer<Model, Loss> drawn;
attune::Trainer<attune::Adapted<Model, kWeights, attune::LowRank{.rank = 2}>, Loss> padded;

}  // namespace

int main() {
  for (int i = 0; i < Model::Input::size; ++i) {
    x.values[i] = 0.125f * static_cast<float>(i % 5) - 0.25f;
    other.values[i] = 0.0625f * static_cast<float>(i % 7) - 0.125f;
  }
  tuned.initialize(attune::XavierUniform{}, attune::Rng{7});
  float loss = 0;
  for (int step = 0; step < 5; ++step) {
    loss = tuned.accumulate(x, 2).loss;
    (void)tuned.accumulate(other, 0);
    (void)tuned.update({.learning_rate = 0.02f});
  }
  predict("tuned", tuned);
  print_bits("loss", &loss, 1);
  head.initialize(attune::XavierUniform{}, attune::Rng{4});
  for (int step = 0; step < 5; ++step) (void)head.step(x, 2, {.learning_rate = 0.1f});
  predict("head", head);

  static Model::InferenceScratch scratch;
  static Model::Output y;
  attune::infer<Model>(kWeights, x, y, scratch);
  print_bits("reader", y.values, Model::Output::size);
  (void)copied.load([](auto& parameters) {
    attune::copy_parameters(kWeights, parameters);
    return attune::Status::kOk;
  });
  (void)copied.step(x, 2, {.learning_rate = 0.1f});
  predict("copied", copied);
  biases.initialize(attune::XavierUniform{}, attune::Rng{3});
  (void)biases.step(x, 2, {.learning_rate = 0.01f});
  predict("biases", biases);
  drawn.initialize(attune::XavierUniform{}, attune::Rng{11});
  predict("drawn", drawn);

  attune::SequenceLength<4> length;
  if (length.set_length(2) != attune::Status::kOk) return 1;
  attune::infer<Model>(kWeights, x, y, scratch, length);
  print_bits("brief", y.values, Model::Output::size);
  attune::infer<Model>(kWeights, x, y, scratch, attune::SequenceLength<4>{});
  print_bits("whole", y.values, Model::Output::size);
  padded.initialize(attune::XavierUniform{}, attune::Rng{7});
  for (int step = 0; step < 3; ++step) {
    loss = padded.accumulate(x, 2, length).loss;
    (void)padded.update({.learning_rate = 0.02f});
  }
  if (padded.predict(x, y, length) == attune::Status::kOk)
    print_bits("padded", y.values, Model::Output::size);
  print_bits("padded_loss", &loss, 1);
  return 0;
}
