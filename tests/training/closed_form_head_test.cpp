// A head in closed form: against equations that are solved by elimination in double, and what an adapting
// device does with it.
#include <attune/training/closed_form_head.hpp>

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kFeatures = 5, kClasses = 3, kSize = kFeatures + 1;
using Device = ClosedFormHead<kFeatures, kClasses>;
using Parameters = Device::Head::Parameters;

struct Example {
  Device::Features x;
  int label;
};
Example draw(Rng& rng) {
  Example example;
  example.label = static_cast<int>(rng.uniform(0.0f, 2.999f));
  for (int i = 0; i < kFeatures; ++i) {
    example.x.values[i] = rng.uniform(-1.0f, 1.0f) + (i == example.label ? 1.5f : 0.0f);
  }
  return example;
}
Parameters draw_head(Rng& rng) {
  Parameters head;
  for (float& value : head.weight.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : head.bias.values) value = rng.uniform(-1.0f, 1.0f);
  return head;
}
double z(const Example& example, int i) {
  return i < kFeatures ? static_cast<double>(example.x.values[i]) : 1.0;
}
double element(const Parameters& head, int i, int label) {
  return static_cast<double>(i < kFeatures ? head.weight(i, label) : head.bias(0, label));
}

// The definition, by Gaussian elimination with pivots.
double expected(std::span<const Example> own, std::span<const Example> others, const Parameters& base,
                const Device::Options& options, int row, int label) {
  double a[kSize][kSize + 1] = {};
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      for (const Example& e : own) a[i][j] += z(e, i) * z(e, j);
      for (const Example& e : others) {
        a[i][j] += static_cast<double>(options.rehearsal) * static_cast<double>(own.size()) /
                   static_cast<double>(others.size()) * z(e, i) * z(e, j);
      }
    }
    a[i][i] += static_cast<double>(options.ridge);
    for (const Example& e : own) {
      double residual =
          static_cast<double>(options.scale) * ((e.label == label ? 1.0 : 0.0) - 1.0 / kClasses);
      for (int j = 0; j < kSize; ++j) residual -= z(e, j) * element(base, j, label);
      a[i][kSize] += z(e, i) * residual;
    }
  }
  for (int col = 0; col < kSize; ++col) {
    int pivot = col;
    for (int i = col; i < kSize; ++i) {
      if (std::fabs(a[i][col]) > std::fabs(a[pivot][col])) pivot = i;
    }
    std::swap(a[col], a[pivot]);
    for (int i = 0; i < kSize; ++i) {
      if (i == col) continue;
      const double factor = a[i][col] / a[col][col];
      for (int j = col; j <= kSize; ++j) a[i][j] -= factor * a[col][j];
    }
  }
  return element(base, row, label) + a[row][kSize] / a[row][row];
}

Device device, factory;
Device::Scratch scratch;

}  // namespace

TEST(ClosedFormHead, solves_the_equations_of_its_definition) {
  Rng rng(1);
  const Parameters base = draw_head(rng);
  for (const Device::Options options : {Device::Options{}, {.ridge = 0.1f, .rehearsal = 3, .scale = 5}}) {
    device.clear();
    factory.clear();
    Example own[20], others[31];
    for (Example& e : own) e = draw(rng);
    for (Example& e : others) e = draw(rng);
    for (const Example& e : own) EXPECT_EQ(device.add(e.x, e.label), Status::kOk);
    for (const Example& e : others) EXPECT_EQ(factory.add(e.x, e.label), Status::kOk);
    Parameters head;
    EXPECT_EQ(device.solve(base, factory, head, scratch, options), Status::kOk);
    for (int label = 0; label < kClasses; ++label) {
      for (int i = 0; i < kSize; ++i) {
        EXPECT_NEAR(element(head, i, label), expected(own, others, base, options, i, label), 1e-4);
      }
    }
  }
}

TEST(ClosedFormHead, has_the_same_bits_on_all_targets) {
  Rng rng(2);
  Parameters head = draw_head(rng);
  device.clear();
  for (int i = 0; i < 20; ++i) {
    const Example e = draw(rng);
    EXPECT_EQ(device.add(e.x, e.label), Status::kOk);
  }
  EXPECT_EQ(device.solve(head, Device{}, head, scratch), Status::kOk);  // in the place of the base
  EXPECT_EQ(hash_bits(head), check::by_policy(0x6ABA9CE0u, 0x4FB434D4u));
}

TEST(ClosedFormHead, learns_without_forgetting) {
  Rng rng(3);
  const Parameters base{};
  device.clear();
  Parameters head;
  for (int i = 0; i < 60; ++i) {
    const Example e = draw(rng);
    EXPECT_EQ(device.add(e.x, e.label), Status::kOk);
  }
  EXPECT_EQ(device.solve(base, Device{}, head, scratch), Status::kOk);
  int right = 0;
  for (int i = 0; i < 100; ++i) {
    const Example e = draw(rng);
    Device::Head::Output y;
    Device::Head::forward(head, e.x, y);
    int best = 0;
    for (int label = 1; label < kClasses; ++label) best = y(0, label) > y(0, best) ? label : best;
    right += best == e.label;
  }
  EXPECT_GE(right, 75);
  // The more the factory's examples weigh, the less outputs on them change.
  factory.clear();
  for (int i = 0; i < 30; ++i) {
    const Example e = draw(rng);
    EXPECT_EQ(factory.add(e.x, e.label), Status::kOk);
  }
  float last = std::numeric_limits<float>::infinity();
  for (const float rehearsal : {0.0f, 1.0f, 10.0f, 1000.0f}) {
    EXPECT_EQ(device.solve(base, factory, head, scratch, {.rehearsal = rehearsal}), Status::kOk);
    float change = 0;
    for (const float value : head.weight.values) change += value * value;
    EXPECT_LT(change, last);
    last = change;
  }
}

TEST(ClosedFormHead, takes_examples_back) {
  Rng rng(4);
  device.clear();
  const Example kept = draw(rng), taken = draw(rng);
  EXPECT_EQ(device.add(kept.x, kept.label), Status::kOk);
  const Device before = device;
  EXPECT_EQ(device.add(taken.x, taken.label), Status::kOk);
  EXPECT_EQ(device.examples(), 2);
  EXPECT_EQ(device.remove(taken.x, taken.label), Status::kOk);
  EXPECT_EQ(device.examples(), 1);
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j <= i; ++j) EXPECT_NEAR(device.gram()(i, j), before.gram()(i, j), 1e-5f);
  }
  const int none = (kept.label + 1) % kClasses;
  EXPECT_EQ(device.remove(kept.x, none), Status::kNoTargets);
}

TEST(ClosedFormHead, takes_probabilities_as_labels) {
  Rng rng(11);
  const Parameters base = draw_head(rng);
  Parameters of_classes, of_labels, of_half;
  device.clear();
  static Device soft;
  soft.clear();
  Device::SoftLabels labels;
  Example examples[12];
  for (Example& e : examples) {
    e = draw(rng);
    for (int c = 0; c < kClasses; ++c) labels(0, c) = c == e.label ? 1.0f : 0.0f;
    EXPECT_EQ(device.add(e.x, e.label), Status::kOk);
    EXPECT_EQ(soft.add(e.x, labels), Status::kOk);
  }
  EXPECT_EQ(device.solve(base, Device{}, of_classes, scratch), Status::kOk);
  EXPECT_EQ(soft.solve(base, Device{}, of_labels, scratch), Status::kOk);
  EXPECT_EQ(hash_bits(of_labels), hash_bits(of_classes));
  // Half of two classes is the mean of both, as the equations are linear in labels.
  const Example& e = examples[0];
  const int other = (e.label + 1) % kClasses;
  for (int c = 0; c < kClasses; ++c) labels(0, c) = c == e.label || c == other ? 0.5f : 0.0f;
  EXPECT_EQ(soft.remove(e.x, e.label), Status::kOk);
  EXPECT_EQ(soft.add(e.x, labels), Status::kOk);
  EXPECT_EQ(soft.solve(base, Device{}, of_half, scratch), Status::kOk);
  EXPECT_EQ(soft.remove(e.x, labels), Status::kOk);
  EXPECT_EQ(soft.examples(), 11);
  EXPECT_EQ(soft.add(e.x, other), Status::kOk);
  EXPECT_EQ(soft.solve(base, Device{}, of_labels, scratch), Status::kOk);
  for (std::size_t i = 0; i < std::size(of_half.weight.values); ++i) {
    EXPECT_NEAR(of_half.weight.values[i], (of_labels.weight.values[i] + of_classes.weight.values[i]) / 2,
                1e-4f);
  }
  const auto is_soft = [](const Device& it) { return std::memcmp(&soft, &it, sizeof soft) == 0; };
  const Device before = soft;
  for (const float bad : {-0.1f, 0.4f, 2.0f, std::numeric_limits<float>::quiet_NaN()}) {
    labels(0, 0) = bad, labels(0, 1) = 0.1f, labels(0, 2) = 0;
    EXPECT_EQ(soft.add(e.x, labels), Status::kInvalidTarget);
    EXPECT_EQ(soft.remove(e.x, labels), Status::kInvalidTarget);
  }
  EXPECT_TRUE(is_soft(before));
}

TEST(ClosedFormHead, gets_new_classes) {
  Rng rng(5);
  const Parameters base = draw_head(rng);
  static ClosedFormHead<kFeatures, kClasses + 1> wider;
  static ClosedFormHead<kFeatures, kClasses + 1>::Scratch room;
  ClosedFormHead<kFeatures, kClasses + 1>::Head::Parameters head;
  wider.clear();
  Example example = draw(rng);
  for (int i = 0; i < kFeatures; ++i) example.x.values[i] = -2;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(wider.add(example.x, kClasses), Status::kOk);
  EXPECT_EQ(wider.solve(base, Device{}, head, room), Status::kOk);
  decltype(wider)::Head::Output y;
  decltype(wider)::Head::forward(head, example.x, y);
  for (int label = 0; label < kClasses; ++label) EXPECT_LT(y(0, label), y(0, kClasses));
}

TEST(ClosedFormHead, changes_nothing_when_it_refuses) {
  Rng rng(6);
  const Parameters base = draw_head(rng);
  Parameters head = base;
  Example example = draw(rng);
  device.clear();
  EXPECT_EQ(device.solve(base, factory, head, scratch), Status::kNoTargets);
  EXPECT_EQ(device.add(example.x, -1), Status::kInvalidTarget);
  EXPECT_EQ(device.add(example.x, kClasses), Status::kInvalidTarget);
  EXPECT_EQ(device.remove(example.x, kClasses), Status::kInvalidTarget);
  EXPECT_EQ(device.add(example.x, 0), Status::kOk);
  example.x.values[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(device.add(example.x, 0), Status::kNotFinite);
  EXPECT_EQ(device.examples(), 1);
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(device.solve(base, factory, head, scratch, {.ridge = bad}), Status::kInvalidWeightDecay);
    EXPECT_EQ(device.solve(base, factory, head, scratch, {.rehearsal = bad}), Status::kInvalidWeightDecay);
    EXPECT_EQ(device.solve(base, factory, head, scratch, {.scale = bad}), Status::kInvalidWeightDecay);
  }
  EXPECT_EQ(device.solve(base, factory, head, scratch, {.scale = 0}), Status::kInvalidWeightDecay);
  // One example and no ridge: the matrix has no inverse.
  EXPECT_EQ(device.solve(base, Device{}, head, scratch, {.ridge = 0}), Status::kIllConditioned);
  Parameters broken = base;
  broken.bias(0, 1) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(device.solve(broken, factory, head, scratch), Status::kNotFinite);
  EXPECT_EQ(hash_bits(head), hash_bits(base));
}

TEST(ClosedFormHead, refuses_examples_that_overflow_its_sums) {
  Rng rng(9);
  device.clear();
  for (int i = 0; i < 8; ++i) {
    const Example e = draw(rng);
    EXPECT_EQ(device.add(e.x, e.label), Status::kOk);
  }
  Example large = draw(rng);
  const auto is_device = [](const Device& other) { return std::memcmp(&device, &other, sizeof device) == 0; };
  const Device before = device;
  for (const int feature : {0, kFeatures - 1}) {
    Example e = large;
    e.x.values[feature] = -1e20f;
    EXPECT_EQ(device.add(e.x, e.label), Status::kNotFinite);
    EXPECT_EQ(device.remove(e.x, 0), Status::kNotFinite);
  }
  EXPECT_TRUE(is_device(before));
  // The second such square is too much.
  large.x.values[2] = 1.8e19f;
  EXPECT_EQ(device.add(large.x, large.label), Status::kOk);
  const Device after = device;
  EXPECT_EQ(device.add(large.x, large.label), Status::kNotFinite);
  EXPECT_TRUE(is_device(after));
}

namespace {

// Examples times `magnitude`, and a head whose outputs are `outputs` times those of draw_head().
Status solve_scaled(int count, float magnitude, float outputs, const Device::Options& options, Rng& rng) {
  Example own[20];
  Parameters base = draw_head(rng), head;
  for (float& value : base.weight.values) value *= outputs / magnitude;
  device.clear();
  for (int i = 0; i < count; ++i) {
    own[i] = draw(rng);
    for (float& value : own[i].x.values) value *= magnitude;
    EXPECT_EQ(device.add(own[i].x, own[i].label), Status::kOk);
  }
  const Status status = device.solve(base, Device{}, head, scratch, options);
  if (status != Status::kOk) return status;
  const std::span<const Example> taken(own, static_cast<std::size_t>(count));
  for (const Example& e : taken) {
    double error = 0;
    for (int i = 0; i < kSize; ++i) {
      error += z(e, i) * (element(head, i, 1) - expected(taken, {}, base, options, i, 1));
    }
    EXPECT_NEAR(error, 0, 0.1);
  }
  return status;
}

}  // namespace

TEST(ClosedFormHead, refuses_ill_conditioned_equations) {
  Rng rng(10);
  for (int trial = 0; trial < 40; ++trial) {  // fewer examples than unknowns, and no ridge
    EXPECT_EQ(solve_scaled(kFeatures, 1, 1, {.ridge = 0}, rng), Status::kIllConditioned);
  }
  EXPECT_EQ(solve_scaled(3, 10, 1, {}, rng), Status::kOk);
  EXPECT_EQ(solve_scaled(3, 1e4f, 1, {}, rng), Status::kIllConditioned);
  EXPECT_EQ(solve_scaled(3, 1e4f, 1, {.ridge = 1e5f}, rng), Status::kOk);
  EXPECT_EQ(solve_scaled(20, 1e4f, 1, {}, rng), Status::kOk);
  EXPECT_EQ(solve_scaled(20, 1, 1e4f, {}, rng), Status::kOk);
  EXPECT_EQ(solve_scaled(20, 1, 1e6f, {}, rng), Status::kIllConditioned);
}

TEST(ClosedFormHead, begins_with_a_head_of_any_form) {
  Rng rng(7);
  const Parameters base = draw_head(rng);
  Device::Head::ParametersOf<Int8Weights, Tensor> small;
  EXPECT_EQ(quantize(base, small), Status::kOk);
  Parameters widened, of_small, of_widened;
  copy_parameters(small, widened);
  const Example example = draw(rng);
  device.clear();
  EXPECT_EQ(device.add(example.x, example.label), Status::kOk);
  EXPECT_EQ(device.solve(small, Device{}, of_small, scratch), Status::kOk);
  EXPECT_EQ(device.solve(widened, Device{}, of_widened, scratch), Status::kOk);
  EXPECT_EQ(hash_bits(of_small), hash_bits(of_widened));
}

TEST(ClosedFormHead, begins_with_a_head_without_a_bias) {
  Rng rng(8);
  Parameters base = draw_head(rng);
  for (float& value : base.bias.values) value = 0;
  Linear<LinearShape{.rows = 1, .d_in = kFeatures, .d_out = kClasses, .bias = false}>::Parameters without;
  without.weight = base.weight;
  const Example example = draw(rng);
  device.clear();
  EXPECT_EQ(device.add(example.x, example.label), Status::kOk);
  Parameters of_base, of_without;
  EXPECT_EQ(device.solve(base, Device{}, of_base, scratch), Status::kOk);
  EXPECT_EQ(device.solve(without, Device{}, of_without, scratch), Status::kOk);
  EXPECT_EQ(hash_bits(of_base), hash_bits(of_without));
}
