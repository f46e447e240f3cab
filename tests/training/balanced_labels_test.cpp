// Labels whose classes are as frequent as a prior: against the scaling of rows and columns in double, and
// what input from outside must not do.
#include <attune/training/balanced_labels.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include <attune/core/fingerprint.hpp>
#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kClasses = 4, kCount = 40;
using Balance = LabelBalance<kClasses>;
using Logits = Tensor<float, kCount, kClasses>;

Logits draw_logits(std::uint64_t seed, float spread = 3) {
  Rng rng(seed);
  Logits logits;
  for (float& value : logits.values) value = rng.uniform(-spread, spread);
  for (int i = 0; i < kCount; ++i) logits(i, 1) += 2;  // the model prefers a class
  return logits;
}
std::span<float> all(Logits& logits) { return logits.values; }
double share(const Logits& labels, int c) {
  double sum = 0;
  for (int i = 0; i < kCount; ++i) sum += static_cast<double>(labels(i, c)) / kCount;
  return sum;
}

/// Rows and columns of e^x are scaled in turn until they have the sums that they should.
void scale_in_double(const Logits& logits, const std::array<float, kClasses>& prior,
                     double (&q)[kCount][kClasses]) {
  for (int i = 0; i < kCount; ++i) {
    for (int c = 0; c < kClasses; ++c) q[i][c] = std::exp(static_cast<double>(logits(i, c)));
  }
  for (int pass = 0; pass < 300; ++pass) {
    for (int c = 0; c < kClasses; ++c) {
      double sum = 0;
      for (int i = 0; i < kCount; ++i) sum += q[i][c];
      for (int i = 0; i < kCount; ++i)
        q[i][c] *= kCount * static_cast<double>(prior[static_cast<std::size_t>(c)]) / sum;
    }
    for (int i = 0; i < kCount; ++i) {
      double sum = 0;
      for (int c = 0; c < kClasses; ++c) sum += q[i][c];
      for (int c = 0; c < kClasses; ++c) q[i][c] /= sum;
    }
  }
}

}  // namespace

TEST(BalancedLabels, equal_scaled_rows_and_columns) {
  static double expected[kCount][kClasses];
  for (const Balance balance :
       {Balance{.iterations = 200}, Balance{.prior = {0.4f, 0.1f, 0.2f, 0.3f}, .iterations = 200}}) {
    Logits labels = draw_logits(1);
    scale_in_double(labels, balance.prior, expected);
    EXPECT_EQ(balanced_labels<kClasses>(all(labels), balance), Status::kOk);
    for (int c = 0; c < kClasses; ++c) {
      EXPECT_NEAR(share(labels, c), balance.prior[static_cast<std::size_t>(c)], 1e-5);
      for (int i = 0; i < kCount; ++i) EXPECT_NEAR(static_cast<double>(labels(i, c)), expected[i][c], 2e-5);
    }
  }
}

TEST(BalancedLabels, take_30_iterations_to_a_percent) {
  Logits labels = draw_logits(2);
  EXPECT_EQ(balanced_labels<kClasses>(all(labels)), Status::kOk);
  for (int c = 0; c < kClasses; ++c) EXPECT_NEAR(share(labels, c), 0.25, 0.01);
}

TEST(BalancedLabels, are_only_attracted_by_an_uncertain_prior) {
  const Logits logits = draw_logits(3);
  Logits labels = logits;
  const float pull = 0.6f;
  EXPECT_EQ(balanced_labels<kClasses>(all(labels), {.pull = pull, .iterations = 200}), Status::kOk);
  for (int c = 1; c < kClasses; ++c) {
    // b = ρ/(1 − ρ)·ln(prior/f), as differences to class 0.
    const double b = static_cast<double>(pull / (1 - pull)) * std::log(share(labels, 0) / share(labels, c));
    for (int i = 0; i < kCount; ++i) {
      const double shift = std::log(static_cast<double>(labels(i, c)) / static_cast<double>(labels(i, 0))) -
                           static_cast<double>(logits(i, c) - logits(i, 0));
      EXPECT_NEAR(shift, b, 1e-3);
    }
  }
  EXPECT_GT(share(labels, 1), 0.28);
}

TEST(BalancedLabels, keep_known_labels) {
  Logits labels = draw_logits(4);
  std::array<int, kCount> known;
  known.fill(kUnlabeled);
  known[3] = 0, known[7] = 3;
  EXPECT_EQ(balanced_labels<kClasses>(all(labels), {.iterations = 200}, known), Status::kOk);
  for (int c = 0; c < kClasses; ++c) {
    EXPECT_EQ(labels(3, c), c == 0 ? 1.0f : 0.0f);
    EXPECT_EQ(labels(7, c), c == 3 ? 1.0f : 0.0f);
    EXPECT_NEAR(share(labels, c), 0.25, 1e-4);
  }
  // More known examples of a class than its share: the others get another class.
  known.fill(2);
  known[0] = kUnlabeled;
  labels = draw_logits(4);
  EXPECT_EQ(balanced_labels<kClasses>(all(labels), {}, known), Status::kOk);
  EXPECT_LT(labels(0, 2), 1e-3f);
}

TEST(BalancedLabels, have_the_same_bits_on_all_targets) {
  Logits labels = draw_logits(5);
  EXPECT_EQ(balanced_labels<kClasses>(all(labels), {.prior = {0.4f, 0.1f, 0.2f, 0.3f}, .pull = 0.9f}),
            Status::kOk);
  EXPECT_EQ(hash_bits(labels), check::by_policy(0x6F56A3CFu, 0x3A77C67Eu));
}

TEST(BalancedLabels, stand_large_logits) {
  for (const float spread : {1e3f, 1e6f, 9e29f}) {
    Logits labels = draw_logits(6, spread);
    EXPECT_EQ(balanced_labels<kClasses>(all(labels)), Status::kOk);
    for (int i = 0; i < kCount; ++i) {
      float sum = 0;
      for (int c = 0; c < kClasses; ++c) sum += labels(i, c);
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
  Logits equal;  // what cannot be told apart is shared
  for (float& value : equal.values) value = 7;
  EXPECT_EQ(balanced_labels<kClasses>(all(equal)), Status::kOk);
  for (const float value : equal.values) EXPECT_NEAR(value, 0.25, 1e-6);
}

TEST(BalancedLabels, refuse_bad_input_and_change_nothing) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInfinity = std::numeric_limits<float>::infinity();
  const Logits before = draw_logits(7);
  Logits logits = before;
  EXPECT_EQ(balanced_labels<kClasses>({}), Status::kInvalidLength);
  EXPECT_EQ(balanced_labels<kClasses>(all(logits).first(kClasses + 1)), Status::kInvalidLength);
  std::array<int, kCount> known;
  known.fill(kUnlabeled);
  EXPECT_EQ(balanced_labels<kClasses>(all(logits), {}, std::span(known).first(2)), Status::kInvalidLength);
  for (const int bad : {-2, kClasses, std::numeric_limits<int>::max()}) {
    known[5] = bad;
    EXPECT_EQ(balanced_labels<kClasses>(all(logits), {}, known), Status::kInvalidTarget);
  }
  for (const float bad : {0.0f, -0.1f, 0.5f, kNan, kInfinity}) {
    EXPECT_EQ(balanced_labels<kClasses>(all(logits), {.prior = {bad, 0.25f, 0.25f, 0.25f}}),
              Status::kInvalidClassWeight);
  }
  for (const float bad : {0.0f, -1.0f, 1.01f, kNan, kInfinity}) {
    EXPECT_EQ(balanced_labels<kClasses>(all(logits), {.pull = bad}), Status::kInvalidWeightDecay);
  }
  for (const int bad : {0, -1, 1001}) {
    EXPECT_EQ(balanced_labels<kClasses>(all(logits), {.iterations = bad}), Status::kInvalidWeightDecay);
  }
  EXPECT_EQ(hash_bits(logits), hash_bits(before));
  for (const float bad : {kNan, kInfinity, -kInfinity, 2e30f}) {
    Logits broken = before;
    broken(kCount - 1, kClasses - 1) = bad;
    const std::uint32_t bits = hash_bits(broken);
    EXPECT_EQ(balanced_labels<kClasses>(all(broken)), Status::kNotFinite);
    EXPECT_EQ(hash_bits(broken), bits);
  }
}
