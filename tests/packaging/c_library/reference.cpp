// The calls of main.c in C++.
#include <algorithm>
#include <cstdint>

#include <sure_weights_in_8_bits.hpp>
#include <weights.hpp>

#include "model.hpp"

extern "C" void print_bits(const char* name, const float* numbers, int count);

namespace {

using namespace small;
constexpr const auto& kWeights = attune::kInFlash<Names, weights>;
constexpr const auto& kQuantized = attune::kInFlash<Names, sure_weights_in_8_bits>;
Model::Input x, other;

void predict(const char* name, auto& trainer) {
  static Model::Output y;
  if (trainer.predict(x, y) == attune::Status::kOk) print_bits(name, y.values, Model::Output::size);
}

using Loss = attune::CrossEntropy<>;
attune::Trainer<attune::Adapted<Model, kWeights, attune::LowRank{.rank = 2}>, Loss, attune::AdamW, 2> tuned;
attune::Trainer<Model, Loss, attune::Sgd<>> copied;
attune::Trainer<attune::BiasesAndNorms<Model, kWeights>, Loss> biases;
attune::Trainer<attune::LinearProbe<Model, kQuantized>, Loss, attune::Sgd<>, 3> head;
attune::Trainer<Model, Loss> drawn;
attune::Trainer<attune::Adapted<Model, kWeights, attune::LowRank{.rank = 2}>, Loss, attune::AdamW, 2> padded;

// learning.c
constexpr int kExamples = 60, kTakes = 24;
using Body = attune::LinearProbeFeatures<Model, kQuantized>;
using Features = Body::Output;
attune::ClosedFormHead<8, 3> sums;
attune::UnlabeledHead<8, 3, kTakes> learning;
Features takes[kTakes];
attune::FeatureDistance<8, 3> distance;
attune::ReplayMemory<Features, attune::ReplayShape{.capacity = 6, .num_classes = 3}> memory{0};
Body::InferenceScratch scratch_of_body;
std::uint32_t noise;

void draw() {
  for (float& number : x.values) {
    noise = noise * 1664525u + 1013904223u;
    number = static_cast<float>(noise >> 16) / 16384.0f - 2.0f;
  }
}
Features features_of_x() {
  Features features;
  attune::infer<Body>(Body::Parameters{}, x, features, scratch_of_body);
  return features;
}
void learn() {
  Model::Output y;
  head.initialize(attune::XavierUniform{}, attune::Rng{4});
  noise = 1;
  for (int i = 0; i < kExamples; ++i) {
    draw();
    if (head.predict(x, y) != attune::Status::kOk) return;
    const auto* const best = std::max_element(y.values, y.values + 3);
    (void)sums.add(features_of_x(), static_cast<int>(best - y.values));
  }
  int labels[kTakes];
  for (int i = 0; i < kTakes; ++i) {
    draw();
    attune::Int8 packed[8];
    const float scale = attune::kernels::pack_row(8, features_of_x().data(), packed);
    attune::kernels::unpack_row(8, packed, scale, takes[i].data());
    labels[i] = i == 0 ? 2 : attune::kUnlabeled;
  }
  const auto take = [](int i, Features& to) {
    to = takes[i];
    return attune::Status::kOk;
  };
  const auto probe = [](const auto&) { return attune::Evaluation<>{}; };
  decltype(learning)::Head::Parameters learned;
  if (!learning.learn(kQuantized.layer<3>(), sums, kTakes, take, probe, learned, labels).ok()) return;
  (void)head.load([&learned](auto& parameters) {
    attune::copy_parameters(learned, parameters.template layer<3>());
    return attune::Status::kOk;
  });
  predict("unlabeled", head);

  float distances[2];
  if (distance.fit(sums) != attune::Status::kOk) return;
  noise = 7;
  for (int i = 0; i < kExamples; ++i) draw();
  distances[0] = distance(features_of_x());
  for (float& number : x.values) number = -8.0f;
  distances[1] = distance(features_of_x());
  print_bits("distances", distances, 2);

  head.initialize(attune::XavierUniform{}, attune::Rng{4});
  noise = 3;
  for (int i = 0; i < 12; ++i) {
    draw();
    (void)memory.add(features_of_x(), i % 3);
  }
  for (int step = 0; step < 3; ++step) {
    attune::Rng rng{static_cast<std::uint64_t>(step)};
    (void)head.accumulate(x, 1);
    (void)memory.replay<3>(head, 2, rng);
    (void)head.update({.learning_rate = 0.1f});
  }
  predict("replayed", head);
}

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
  for (int step = 0; step < 5; ++step) {
    (void)head.accumulate(x, 2);
    (void)head.update_incomplete({.learning_rate = 0.1f});
  }
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
    (void)padded.update_incomplete({.learning_rate = 0.02f});
  }
  if (padded.predict(x, y, length) == attune::Status::kOk)
    print_bits("padded", y.values, Model::Output::size);
  print_bits("padded_loss", &loss, 1);
  learn();
  return 0;
}
