#include <attune/layers/softmax.hpp>
#include <attune/training/cross_entropy.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::CrossEntropy;
using attune::CrossEntropyOptions;
using attune::Reduction;
using attune::Status;
using attune::Tensor;

constexpr int kRows = 5, kClasses = 7;
using Logits = Tensor<float, kRows, kClasses>;
using Smoothed = CrossEntropy<CrossEntropyOptions{.label_smoothing = 0.2}>;
using Doubtful = CrossEntropy<CrossEntropyOptions{.noise_exponent = 0.7}>;
constexpr int kTargets[kRows] = {3, 0, 6, 6, 1};
constexpr Tensor<float, 1, kClasses> kClassWeights{{1, 0.5f, 2, 3, 0.25f, 0, 1.5f}};

Logits random_logits(std::uint64_t seed) {
  attune::Rng rng(seed);
  Logits x;
  check::fill(x, rng, -4, 4);
  return x;
}

// −ln p of every class, in double.
double surprise(const Logits& x, int row, int c) {
  double total = 0;
  for (int k = 0; k < kClasses; ++k)
    total += attune::kernels::exponential(static_cast<double>(x(row, k) - x(row, c)));
  return attune::kernels::logarithm(total);
}

}  // namespace

// Gradients: transformer_gradients_test.cpp.

TEST(CrossEntropy, generalized_follows_zhang_and_sabuncu) {
  const Logits x = random_logits(12);
  Logits dx;
  double expected = 0, weights = 0;
  const auto doubts = [](double surprised) {
    return (1 - attune::kernels::exponential(-0.7 * surprised)) / 0.7;
  };
  for (int i = 0; i < kRows; ++i) {
    const auto weight = static_cast<double>(kClassWeights.values[kTargets[i]]);
    expected += weight * doubts(surprise(x, i, kTargets[i]));
    weights += weight;
  }
  EXPECT_NEAR(Doubtful::forward(x, kTargets, kClassWeights, dx).loss, expected / weights, 1e-6);
  // An ignored row counts for nothing.
  const int targets[kRows] = {3, -100, 6, 6, 1};
  const auto result = Doubtful::forward(x, targets, dx);
  double rest = 0;
  for (const int i : {0, 2, 3, 4}) rest += doubts(surprise(x, i, kTargets[i]));
  EXPECT_NEAR(result.loss, rest / 4, 1e-6);
  for (int c = 0; c < kClasses; ++c) EXPECT_EQ(dx(1, c), 0.0f);
  Tensor<float, kRows, 1> losses;
  EXPECT_EQ(Doubtful::forward_rows(x, targets, losses), Status::kOk);
  EXPECT_NEAR(losses(0, 0), doubts(surprise(x, 0, 3)), 1e-6);
}

TEST(CrossEntropy, generalized_of_the_least_exponent_is_near_cross_entropy) {
  using Least = CrossEntropy<CrossEntropyOptions{.noise_exponent = 0.01}>;
  Logits x = random_logits(14);
  x(0, kTargets[0]) = 9;  // sure
  Tensor<float, kRows, 1> losses;
  EXPECT_EQ(Least::forward_rows(x, kTargets, losses), Status::kOk);
  for (int i = 0; i < kRows; ++i) {
    const double surprised = surprise(x, i, kTargets[i]);
    EXPECT_NEAR(losses(i, 0), (1 - attune::kernels::exponential(-0.01 * surprised)) / 0.01, 1.5e-5) << i;
    EXPECT_NEAR(losses(i, 0), surprised, 0.005 * surprised * surprised + 1.5e-5) << i;
  }
}

TEST(CrossEntropy, generalized_has_the_gradient_of_differences) {
  Tensor<double, kRows, kClasses> x, dx, unused;
  attune::Rng rng(13);
  check::fill(x, rng, -4, 4);
  Tensor<double, 1, kClasses> weights;
  for (int c = 0; c < kClasses; ++c) weights.values[c] = static_cast<double>(kClassWeights.values[c]);
  (void)Doubtful::forward(x, kTargets, weights, dx);
  const auto loss = [&] { return Doubtful::forward(x, kTargets, weights, unused).loss; };
  EXPECT_GT(check::expect_gradient({"x"}, loss, x, dx), 0.01);
}

TEST(CrossEntropy, generalized_is_pulled_little_by_a_label_that_the_model_excludes) {
  Tensor<float, 1, 3> x{{8, 0, 0}}, dx;
  const int wrong[1] = {1}, right[1] = {0};
  (void)CrossEntropy<>::forward(x, wrong, dx);
  const float pulled = dx(0, 1);
  (void)Doubtful::forward(x, wrong, dx);
  EXPECT_LT(dx(0, 1), 0.0f);
  EXPECT_GT(dx(0, 1), pulled / 100);  // p^0.7 of p = e^−8
  // One that it trusts counts as much as ever.
  (void)CrossEntropy<>::forward(x, right, dx);
  const float trusted = dx(0, 0);
  (void)Doubtful::forward(x, right, dx);
  EXPECT_NEAR(dx(0, 0) / trusted, 1, 1e-3);
}

TEST(CrossEntropy, any_number_can_be_the_ignored_one) {
  using IgnoresSix = CrossEntropy<CrossEntropyOptions{.ignore_index = 6}>;
  const Logits x = random_logits(4);
  Logits dx;
  const float loss = IgnoresSix::forward(x, kTargets, dx).loss;
  EXPECT_NEAR(loss, (surprise(x, 0, 3) + surprise(x, 1, 0) + surprise(x, 4, 1)) / 3, 1e-6);
  EXPECT_EQ(dx(2, 0), 0.0f);
}

TEST(CrossEntropy, of_ignored_targets_alone_is_zero) {
  const int targets[kRows] = {-100, -100, -100, -100, -100};
  Logits dx = random_logits(5);
  const auto result = CrossEntropy<>::forward(random_logits(6), targets, dx);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result.loss, 0.0f);
  for (const float value : dx.values) EXPECT_EQ(value, 0.0f);
}

TEST(CrossEntropy, an_invalid_target_is_refused_and_nothing_written) {
  for (const int bad : {-1, kClasses, 1 << 30, -(1 << 30)}) {
    const int targets[kRows] = {0, 1, 2, 3, bad};
    const Logits x = random_logits(7), before = random_logits(8);
    Logits dx = before;
    const auto result = CrossEntropy<>::forward(x, targets, dx);
    EXPECT_EQ(result.status, Status::kInvalidTarget);
    EXPECT_TRUE(check::is_nan(result.loss));
    EXPECT_TRUE(check::same_bits(dx, before));
    Tensor<float, kRows, 1> losses{};
    EXPECT_EQ(CrossEntropy<>::forward_rows(x, targets, losses), Status::kInvalidTarget);
    EXPECT_EQ(CrossEntropy<>::backward_rows(x, targets, losses, dx), Status::kInvalidTarget);
    EXPECT_TRUE(check::same_bits(dx, before));
  }
}

TEST(CrossEntropy, a_class_weight_that_is_negative_or_not_finite_is_refused_and_nothing_written) {
  const int targets[kRows] = {0, 1, 2, 3, 4};
  const Logits x = random_logits(10), before = random_logits(11);
  for (const float bad : {-1.0f, -1e-30f, check::kNan<float>, check::kInfinity<float>}) {
    Tensor<float, 1, kClasses> weights{};
    weights(0, kClasses - 1) = bad;  // of a class that no target names
    Logits dx = before;
    const auto result = CrossEntropy<>::forward(x, targets, weights, dx);
    EXPECT_EQ(result.status, Status::kInvalidClassWeight);
    EXPECT_TRUE(check::is_nan(result.loss));
    Tensor<float, kRows, 1> losses{};
    EXPECT_EQ(CrossEntropy<>::forward_rows(x, targets, losses, weights.data()), Status::kInvalidClassWeight);
    EXPECT_EQ(CrossEntropy<>::backward_rows(x, targets, losses, dx, weights.data()),
              Status::kInvalidClassWeight);
    const attune::WeightedCrossEntropy<kClasses> loss{weights};
    EXPECT_EQ(loss.sum(attune::ConstView<Logits>(x), targets, attune::View<Logits>(dx)).status,
              Status::kInvalidClassWeight);
    EXPECT_TRUE(check::same_bits(dx, before));
  }
}

TEST(CrossEntropy, rows_without_reduction_make_the_reduced_one) {
  const Logits x = random_logits(9);
  const int targets[kRows] = {3, 0, -100, 6, 1};
  Logits reduced, by_rows;
  Tensor<float, kRows, 1> losses, ones;
  for (float& value : ones.values) value = 1;
  const float* weights = kClassWeights.data();
  using Both = CrossEntropy<CrossEntropyOptions{.reduction = Reduction::kSum, .label_smoothing = 0.1}>;
  const float loss = Both::forward(x, targets, kClassWeights, reduced).loss;
  EXPECT_EQ(Both::forward_rows(x, targets, losses, weights), Status::kOk);
  EXPECT_EQ(Both::backward_rows(x, targets, ones, by_rows, weights), Status::kOk);
  float total = 0;
  for (const float value : losses.values) total += value;
  EXPECT_NEAR(loss, total, 2e-6f);
  EXPECT_EQ(losses.values[2], 0.0f);
  EXPECT_TRUE(check::same_bits(reduced, by_rows));
}

TEST(CrossEntropy, works_in_place) {
  const Logits x = random_logits(10);
  Logits dx, in_place = x;
  const float loss = Smoothed::forward(x, kTargets, kClassWeights, dx).loss;
  const float again = Smoothed::forward(in_place, kTargets, kClassWeights, in_place).loss;
  EXPECT_EQ(loss, again);
  EXPECT_TRUE(check::same_bits(dx, in_place));
}

TEST(CrossEntropy, of_extreme_logits_is_their_distance) {
  Logits x{}, dx;
  for (int i = 0; i < kRows; ++i) x(i, 5) = 1e30f;
  EXPECT_EQ(CrossEntropy<>::forward(x, kTargets, dx).loss, 1e30f);
  const int easy[kRows] = {5, 5, 5, 5, 5};
  EXPECT_EQ(CrossEntropy<>::forward(x, easy, dx).loss, 0.0f);
  x(1, 1) = check::kNan<float>;
  EXPECT_TRUE(check::is_nan(CrossEntropy<>::forward(x, easy, dx).loss));
}

TEST(LogSoftmax, keeps_minus_infinity_and_nan) {
  Logits x = random_logits(12), y;
  x(0, 2) = -check::kInfinity<float>;
  x(1, 2) = check::kNan<float>;
  for (int c = 0; c < kClasses; ++c) x(2, c) = -check::kInfinity<float>;
  attune::LogSoftmax<kRows, kClasses>::forward(x, y);
  EXPECT_EQ(y(0, 2), -check::kInfinity<float>);
  EXPECT_LT(y(0, 1), 0.0f);
  EXPECT_TRUE(check::is_nan(y(1, 0)));
  EXPECT_TRUE(check::is_nan(y(2, 0)));
  EXPECT_LT(y(3, 0), 0.0f);
}

TEST(CrossEntropy, has_the_same_bits_everywhere) {
  check::BitHash hash;
  Logits dx, y;
  const int targets[kRows] = {3, 0, -100, 6, 1};
  hash.add(CrossEntropy<>::forward(random_logits(13), targets, dx).loss);
  for (const float value : dx.values) hash.add(value);
  hash.add(Smoothed::forward(random_logits(14), targets, kClassWeights, dx).loss);
  for (const float value : dx.values) hash.add(value);
  attune::LogSoftmax<kRows, kClasses>::forward(random_logits(15), y);
  attune::LogSoftmax<kRows, kClasses>::backward(y, random_logits(16), dx);
  for (const float value : y.values) hash.add(value);
  for (const float value : dx.values) hash.add(value);
  EXPECT_EQ(hash.value(), check::by_policy(0xBCD46AE5u, 0x39F403CCu));
}

TEST(CrossEntropy, takes_labels_of_bytes) {
  // The int that a byte converts to lives as long as the call.
  attune::Tensor<float, 1, 3> logits{}, gradient;
  logits.values[1] = 2;
  const unsigned char label = 1;
  const auto of_byte = attune::CrossEntropy<>::forward(logits, label, gradient);
  EXPECT_EQ(of_byte.status, attune::Status::kOk);
  EXPECT_EQ(of_byte.loss, attune::CrossEntropy<>::forward(logits, 1, gradient).loss);
  attune::Tensor<float, 1, 1> row_losses;
  EXPECT_EQ(attune::CrossEntropy<>::forward_rows(logits, label, row_losses), attune::Status::kOk);
  EXPECT_EQ(row_losses(0, 0), of_byte.loss);
}
