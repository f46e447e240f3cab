// Samples the next token from a model's logits, by temperature and top-k (Ackley, Hinton and Sejnowski, "A
// Learning Algorithm for Boltzmann Machines", 1985; Fan, Lewis and Dauphin, "Hierarchical Neural Story
// Generation", 2018, section 5.1).
//
//   p_j = e^(x_j/T) / Σ_i e^(x_i/T),   over the k largest x_i
//
//   attune::Rng rng(1);
//   static attune::SamplingScratch<kVocabulary> scratch;
//   const auto next = attune::sample(logits, {.temperature = 0.8f, .top_k = 40}, rng, scratch);
//   if (next.ok()) ids[n++] = next.id;
//
// Sums run from the first token to the last, so the same seed draws the same tokens on every target.
#pragma once

#include <limits>
#include <type_traits>

#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of sample().
struct SamplingOptions {
  float temperature = 1;  // T ≥ 0 and finite; 0: the largest logit, without a draw from `rng`
  int top_k = 0;          // k ≥ 0; 0, or more than the vocabulary: all tokens
};

/// A sampled token.
struct Sampled {
  int id;  // −1 on an error. Of equal logits, the first wins at temperature 0 and at the end of the k largest
  Status status;

  [[nodiscard]] bool ok() const { return status == Status::kOk; }
};

/// Memory of one draw; dead afterwards.
template <int vocabulary, class Scalar = float>
struct SamplingScratch {
  Tensor<Scalar, 1, vocabulary> weights;  // one per token
};

namespace detail {

// The id of the largest of `size` logits; −1 if one is NaN or +∞, or if all are −∞.
template <class Scalar>
[[nodiscard]] int largest_logit(int size, const Scalar* x) {
  int largest = 0;
  for (int j = 0; j < size; ++j) {
    if (!(x[j] <= (std::numeric_limits<Scalar>::max)())) return -1;
    if (x[j] > x[largest]) largest = j;
  }
  return x[largest] >= std::numeric_limits<Scalar>::lowest() ? largest : -1;
}

}  // namespace detail

/// Samples a token from logits[1, vocabulary], which are only read; −∞ is never drawn. Each draw takes one
/// number from `rng`. On an error nothing is drawn: kInvalidSampling if an option is outside its range,
/// kNotFinite if a logit is NaN or +∞, or if all are −∞.
template <class Logits, class Scalar, int vocabulary>
[[nodiscard]] Sampled sample(const Logits& logits, const SamplingOptions& options, Rng& rng,
                             SamplingScratch<vocabulary, Scalar>& scratch) {
  const auto row = dense_view(logits);
  static_assert(detail::Holds<(row.rows == 1 && row.cols == vocabulary)>,
                "attune::sample: logits must be [1, vocabulary] of SamplingScratch");
  static_assert(detail::Holds<std::is_same_v<std::remove_const_t<typename decltype(row)::Scalar>, Scalar>>,
                "attune::sample: logits and scratch have different scalar types; use "
                "SamplingScratch<vocabulary, Scalar>");
  const Scalar* const x = row.data;
  const Scalar temperature = static_cast<Scalar>(options.temperature);
  if (!(temperature >= 0 && temperature <= (std::numeric_limits<float>::max)()) || options.top_k < 0) {
    return {-1, Status::kInvalidSampling};
  }
  const int largest = detail::largest_logit(vocabulary, x);
  if (largest < 0) return {-1, Status::kNotFinite};
  if (temperature == 0) return {largest, Status::kOk};

  // The k-th largest logit, and the number of equal logits among the k.
  Scalar* const weights = scratch.weights.data();
  Scalar lowest = -std::numeric_limits<Scalar>::infinity();
  int equals = vocabulary;
  if (options.top_k > 0 && options.top_k < vocabulary) {
    lowest = detail::kth_largest(options.top_k, vocabulary, x, weights);
    equals = options.top_k;
    for (int j = 0; j < vocabulary; ++j) equals -= x[j] > lowest;
  }
  Scalar total = 0;
  for (int j = 0; j < vocabulary; ++j) {
    const bool kept = x[j] > lowest || (x[j] == lowest && equals-- > 0);
    weights[j] = kept ? kernels::exponential((x[j] - x[largest]) / temperature) : Scalar(0);
    total += weights[j];
  }
  // Below `total`, because rounding a product with a number below 1 keeps it there. Repeating the same sum
  // therefore exceeds it.
  const Scalar drawn = rng.uniform<Scalar>() * total;
  int id = 0;
  for (Scalar reached = weights[0]; reached <= drawn;) reached += weights[++id];
  return {id, Status::kOk};
}

}  // namespace ATTUNE_NAMESPACE
