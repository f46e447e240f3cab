// How far an input is from all that a model has seen, and the threshold above which it is an anomaly.
//
//   d²(z) = min_c (z − m_c)ᵀ·S⁻¹·(z − m_c),   S = (1/n)·(ZᵀZ − Σ_c n_c·m_c·m_cᵀ) + λ·I
//
// d is the Mahalanobis distance of features to the nearest class, with one covariance S for all classes. The
// method is by Lee, Lee, Lee and Shin, "A Simple Unified Framework for Detecting Out-of-Distribution Samples
// and Adversarial Attacks", 2018, arXiv 1807.03888. A ClosedFormHead has all its sums, so a device needs no
// further pass.
//
// The threshold is a quantile of distances of normal inputs, by the P² algorithm (Jain and Chlamtac, "The P²
// Algorithm for Dynamic Calculation of Quantiles and Histograms Without Storing Observations", 1985).
//
//   attune::FeatureDistance<16, 4> distance;
//   attune::Quantile<attune::QuantileOptions{.share = 0.95}> normal;
//   status = distance.fit(head);                       // a ClosedFormHead<16, 4> with examples
//   status = normal.add(distance(features));           // of normal inputs
//   const bool anomaly = distance(features) > normal.value();
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/log_softmax.hpp>
#include <attune/training/cholesky.hpp>
#include <attune/training/closed_form_head.hpp>

namespace ATTUNE_NAMESPACE {

/// The squared Mahalanobis distance of features to the nearest class. A plain value; zero-initialized, it is
/// not fitted.
template <int num_features, int num_classes, class ScalarType = float>
class FeatureDistance {
 public:
  using Scalar = ScalarType;
  /// Sums over examples.
  using Sums = ClosedFormHead<num_features, num_classes, Scalar>;
  /// The features of one example, [1, num_features].
  using Features = typename Sums::Features;

  /// Fits classes and covariance to the examples of `sums`. Classes without an example do not count. `ridge`
  /// is λ, at least 0, in units of the features' mean variance within classes. On an error nothing changes:
  /// kNoTargets without examples, kInvalidWeightDecay for the ridge, kIllConditioned if the covariance is
  /// singular: raise it.
  Status fit(const Sums& sums, Scalar ridge = Scalar(0.01)) {
    if (!(ridge >= 0 && ridge <= Scalar(1e6))) return Status::kInvalidWeightDecay;
    bool any = false;
    for (int c = 0; c < num_classes; ++c) any = any || is_present(sums, c);
    if (!any) return Status::kNoTargets;
    // The new factor is above the diagonal until it is complete: a copy of the object would be on the stack.
    Scalar diagonal[std::size_t{num_features}];
    const auto lower = [&](int i, int j) -> Scalar& { return i == j ? diagonal[i] : factor_(j, i); };
    find_covariance(sums, ridge, lower);
    constexpr Scalar kNoise = num_features * std::numeric_limits<Scalar>::epsilon();
    const bool is_regular = detail::factor_cholesky<num_features>(lower, kNoise) > 0;
    for (int i = 0; i < num_features; ++i) {
      if (is_regular) factor_(i, i) = diagonal[i];
      for (int j = 0; j < i; ++j) {
        if (is_regular) factor_(i, j) = factor_(j, i);
        factor_(j, i) = Scalar(0);
      }
    }
    if (!is_regular) return Status::kIllConditioned;
    for (int c = 0; c < num_classes; ++c) {
      present_[c] = is_present(sums, c);
      for (int i = 0; i < num_features; ++i) means_(c, i) = mean_of(sums, c, i);
      detail::solve_lower<num_features>(factor_, &means_(c, 0));
    }
    return Status::kOk;
  }
  /// d² of features; infinity before fit(), and where it is not finite: such an input is above any threshold.
  [[nodiscard]] Scalar operator()(ConstView<Features> features) const {
    Scalar white[std::size_t{num_features}];
    for (int i = 0; i < num_features; ++i) white[i] = features(0, i);
    detail::solve_lower<num_features>(factor_, white);
    Scalar nearest = std::numeric_limits<Scalar>::infinity();
    for (int c = 0; c < num_classes; ++c) {
      if (!present_[c]) continue;
      Scalar squares = 0;
      for (int i = 0; i < num_features; ++i) {
        const Scalar away = white[i] - means_(c, i);
        squares = kernels::multiply_add(away, away, squares);
      }
      if (squares < nearest) nearest = squares;  // never NaN
    }
    return nearest;
  }

 private:
  static Scalar examples_of(const Sums& sums, int label) { return sums.class_sums()(num_features, label); }
  static bool is_present(const Sums& sums, int label) { return examples_of(sums, label) > Scalar(0.5); }
  static Scalar mean_of(const Sums& sums, int label, int i) {
    return is_present(sums, label) ? sums.class_sums()(i, label) / examples_of(sums, label) : Scalar(0);
  }
  // The lower half of S: lower(i, j), j ≤ i.
  static void find_covariance(const Sums& sums, Scalar ridge, const auto& lower) {
    Scalar count = 0, variances = 0;
    for (int c = 0; c < num_classes; ++c) count += examples_of(sums, c);
    for (int i = 0; i < num_features; ++i) {
      for (int j = 0; j <= i; ++j) {
        Scalar sum = sums.gram()(i, j);
        for (int c = 0; c < num_classes; ++c) {
          sum = kernels::multiply_add(-sums.class_sums()(i, c), mean_of(sums, c, j), sum);
        }
        lower(i, j) = sum / count;
      }
      variances += lower(i, i);
    }
    for (int i = 0; i < num_features; ++i) lower(i, i) += ridge * variances / num_features;
  }

  Tensor<Scalar, num_features, num_features> factor_{};
  Tensor<Scalar, num_classes, num_features> means_{};  // whitened
  bool present_[std::size_t{num_classes}]{};
};

/// −ln Σ e^x of logits[1, classes]: large if no class fits (Liu, Wang, Owens and Li, "Energy-based
/// Out-of-distribution Detection", 2020, arXiv 2010.03759).
[[nodiscard]] auto energy(const auto& logits_matrix) {
  const auto logits = dense_view(logits_matrix);
  static_assert(detail::Holds<(logits.rows == 1)>, "attune::energy: logits must be [1, classes]");
  const auto all = kernels::log_sum_exp<logits.cols>(logits.data);
  return -(all.largest + all.log_sum);
}

/// The quantile to estimate.
struct QuantileOptions {
  double share = 0.5;  // of the numbers that are below it, in (0, 1)
};
/// A quantile of a stream of numbers in 11 words, by the P² algorithm. A plain value; zero-initialized,
/// it is empty. The same stream gives the same bits everywhere. Exact for up to five numbers. A FlashStore
/// does not tell the quantiles of two shares apart: put one into a struct with a kFingerprint of your own.
template <QuantileOptions options, class Scalar = float>
class Quantile {
  static_assert(detail::Holds<(options.share > 0 && options.share < 1)>,
                "attune::Quantile: share must be in (0, 1)");
  // A constant of its own: outside a constant expression, clang reads another field of a template argument.
  static constexpr double kShare = options.share;

 public:
  /// Forgets all numbers.
  void clear() { *this = {}; }
  /// Adds a number. Returns kNotFinite with nothing added.
  Status add(Scalar x) {
    if (x - x != 0) return Status::kNotFinite;
    if (count_ < kMarkers) {
      int i = static_cast<int>(count_++);
      for (; i > 0 && heights_[i - 1] > x; --i) heights_[i] = heights_[i - 1];
      heights_[i] = x;
      for (int k = 0; k < kMarkers; ++k) positions_[k] = static_cast<std::uint32_t>(k);
      return Status::kOk;
    }
    if (count_ == (std::numeric_limits<std::uint32_t>::max)()) return Status::kOk;  // settled
    heights_[0] = detail::smaller(heights_[0], x);
    heights_[kMarkers - 1] = detail::larger(heights_[kMarkers - 1], x);
    for (int i = 1; i < kMarkers; ++i) positions_[i] += i == kMarkers - 1 || x < heights_[i];
    ++count_;
    for (int i = 1; i < kMarkers - 1; ++i) move(i);
    return Status::kOk;
  }
  /// The quantile of the numbers so far, from the least to the largest; infinity without any.
  [[nodiscard]] Scalar value() const {
    if (count_ == 0) return std::numeric_limits<Scalar>::infinity();
    if (count_ > kMarkers) return heights_[kMarkers / 2];
    constexpr auto kP = static_cast<Scalar>(kShare);
    return heights_[static_cast<int>(kP * static_cast<Scalar>(count_ - 1) + Scalar(0.5))];
  }
  /// How many numbers were added.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  static constexpr int kMarkers = 5;  // the least, p/2, p, (1 + p)/2, the largest

  // Moves a marker by one position if it is that far from where it should be.
  void move(int i) {
    constexpr auto kP = static_cast<Scalar>(kShare);
    constexpr Scalar kShares[kMarkers] = {0, kP / 2, kP, (1 + kP) / 2, 1};
    const Scalar away = kShares[i] * static_cast<Scalar>(count_ - 1) - static_cast<Scalar>(positions_[i]);
    const std::uint32_t below = positions_[i] - positions_[i - 1], above = positions_[i + 1] - positions_[i];
    if (away >= 1 && above > 1) {
      heights_[i] = moved(i, 1);
      ++positions_[i];
    } else if (away <= -1 && below > 1) {
      heights_[i] = moved(i, -1);
      --positions_[i];
    }
  }
  // A parabola through three markers; a line, where that leaves their order.
  [[nodiscard]] Scalar moved(int i, int by) const {
    const auto below = static_cast<Scalar>(positions_[i] - positions_[i - 1]);
    const auto above = static_cast<Scalar>(positions_[i + 1] - positions_[i]);
    const Scalar rise = (heights_[i + 1] - heights_[i]) / above,
                 before = (heights_[i] - heights_[i - 1]) / below;
    const auto step = static_cast<Scalar>(by);
    const Scalar curved =
        heights_[i] + step / (below + above) * ((below + step) * rise + (above - step) * before);
    if (heights_[i - 1] < curved && curved < heights_[i + 1]) return curved;
    // The difference of two heights may overflow.
    return detail::clamp(heights_[i] + step * (by > 0 ? rise : before), heights_[i - 1], heights_[i + 1]);
  }

  std::uint32_t count_ = 0;
  Scalar heights_[kMarkers]{};
  std::uint32_t positions_[kMarkers]{};  // how many numbers are below
};

}  // namespace ATTUNE_NAMESPACE
