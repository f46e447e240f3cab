// Labels for examples that nobody labeled, from a model's logits. If their classes are about as frequent as a
// prior says, each class gets its share of the labels, however much the model prefers another one.
//
//   q_ic = softmax_c(x_ic + b_c),   f_c = (1/n)·Σ_i q_ic,   b_c ← ρ·(b_c + ln prior_c − ln f_c)
//
// b begins at 0. With ρ = 1, f becomes the prior: Sinkhorn's iteration for the labels of the largest
// likelihood under this constraint (Cuturi, "Sinkhorn Distances", 2013; Asano, Rupprecht and Vedaldi,
// "Self-labelling via Simultaneous Clustering and Representation Learning", 2019, arXiv 1911.05371). With ρ <
// 1 the prior only attracts f: at the end, b = ρ/(1 − ρ)·ln(prior/f).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/simd/elementary.hpp>

namespace ATTUNE_NAMESPACE {

/// The label of an example that nobody labeled.
inline constexpr int kUnlabeled = -1;

/// How frequent classes are among unlabeled examples.
template <int num_classes, class Scalar = float>
struct LabelBalance {
  static_assert(detail::Holds<(num_classes > 1)>, "attune::LabelBalance: at least two classes are required");

  /// The expected share of each class, at least 10⁻⁶; all sum to 1. The default is equal shares.
  std::array<Scalar, std::size_t{num_classes}> prior = [] {
    std::array<Scalar, std::size_t{num_classes}> equal{};
    for (Scalar& share : equal) share = Scalar(1) / num_classes;
    return equal;
  }();
  Scalar pull = 1;      // ρ in (0, 1]: 1 if shares are as expected, less if they are uncertain
  int iterations = 30;  // in [1, 1000]

  /// kInvalidClassWeight for the prior, kInvalidWeightDecay for the rest.
  [[nodiscard]] Status check() const {
    Scalar all = 0;
    for (const Scalar share : prior) {
      if (!(share >= Scalar(1e-6))) return Status::kInvalidClassWeight;
      all += share;
    }
    if (!(all >= Scalar(0.999) && all <= Scalar(1.001))) return Status::kInvalidClassWeight;
    const bool valid = pull > 0 && pull <= 1 && iterations >= 1 && iterations <= 1000;
    return valid ? Status::kOk : Status::kInvalidWeightDecay;
  }
};

namespace detail {

// Calls to(c, e^(x_c + shift_c − largest)) for each class. Returns the sum.
template <int num_classes, class Scalar, class To>
Scalar shifted_exponentials(const Scalar* logits, const Scalar* shift, const To& to) {
  Scalar largest = logits[0] + shift[0];
  for (int c = 1; c < num_classes; ++c) largest = larger(largest, logits[c] + shift[c]);
  Scalar all = 0;
  for (int c = 0; c < num_classes; ++c) {
    const Scalar power = kernels::exponential(logits[c] + shift[c] - largest);
    to(c, power);
    all += power;
  }
  return all;
}

}  // namespace detail

/// Replaces logits[n, num_classes] by labels: the probability of each class, 1 in total per row. `known` has
/// the class of each example, or kUnlabeled. Empty, all are unlabeled. Known labels stay, and count for the
/// shares. Sums run row by row, so every target gets the same bits. On an error nothing is written.
///
/// Returns kInvalidLength if `logits` is empty or no multiple of num_classes, or if `known` has another
/// length. Returns kInvalidTarget if a known label is neither a class nor kUnlabeled. Returns
/// kInvalidClassWeight or kInvalidWeightDecay as LabelBalance::check(), kNotFinite for NaN or a logit beyond
/// ±10³⁰.
template <int num_classes, class Scalar = float>
Status balanced_labels(std::type_identity_t<std::span<Scalar>> logits,
                       const std::type_identity_t<LabelBalance<num_classes, Scalar>>& balance = {},
                       std::span<const int> known = {}) {
  const std::size_t count = logits.size() / num_classes;
  if (count == 0 || logits.size() % num_classes != 0) return Status::kInvalidLength;
  if (!known.empty() && known.size() != count) return Status::kInvalidLength;
  for (const int label : known) {
    if (label != kUnlabeled && (label < 0 || label >= num_classes)) return Status::kInvalidTarget;
  }
  if (const Status status = balance.check(); status != Status::kOk) return status;
  for (const Scalar logit : logits) {
    if (!(logit >= Scalar(-1e30) && logit <= Scalar(1e30))) return Status::kNotFinite;
  }
  const auto label_of = [known](std::size_t i) { return known.empty() ? kUnlabeled : known[i]; };
  Scalar shift[std::size_t{num_classes}] = {}, powers[std::size_t{num_classes}];  // b, and e^(x + b) of a row
  for (int iteration = 0; iteration < balance.iterations; ++iteration) {
    Scalar sums[std::size_t{num_classes}] = {};  // n·f
    for (std::size_t i = 0; i < count; ++i) {
      if (label_of(i) != kUnlabeled) {
        sums[label_of(i)] += 1;
        continue;
      }
      const Scalar all = detail::shifted_exponentials<num_classes>(
          &logits[i * num_classes], shift, [&](int c, Scalar power) { powers[c] = power; });
      for (int c = 0; c < num_classes; ++c) sums[c] += powers[c] / all;
    }
    for (int c = 0; c < num_classes; ++c) {
      // A class without any example attracts the next ones a bounded bit.
      const Scalar share = detail::larger(sums[c] / static_cast<Scalar>(count), Scalar(1e-30));
      const Scalar prior = balance.prior[static_cast<std::size_t>(c)];
      shift[c] = balance.pull * (shift[c] + (kernels::logarithm(prior) - kernels::logarithm(share)));
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    Scalar* const row = &logits[i * num_classes];
    if (label_of(i) != kUnlabeled) {
      for (int c = 0; c < num_classes; ++c) row[c] = c == label_of(i) ? Scalar(1) : Scalar(0);
      continue;
    }
    const Scalar all = detail::shifted_exponentials<num_classes>(
        row, shift, [&](int c, Scalar power) { powers[c] = power; });
    for (int c = 0; c < num_classes; ++c) row[c] = powers[c] / all;
  }
  return Status::kOk;
}

}  // namespace ATTUNE_NAMESPACE
