// Attention weights of one head, and their product with its values.
//
//   S = scale · Q·Kᵀ + mask,   P = softmax(S),   O = P·V
#pragma once

#include <cstddef>

#include <attune/attention/block_skipping.hpp>
#include <attune/attention/mask.hpp>
#include <attune/attention/scores.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/ops/rows.hpp>
#include <attune/kernels/ops/softmax_prefix.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE::detail {

// The values of rows from a row on, for kernels::softmax_rows(): nothing, a place for them, or those that are
// given.
template <class Scalar>
ATTUNE_INLINE auto values_from(std::nullptr_t, int) {
  return first_if<kernels::kRowValuesAtRunTime>(kernels::RowValues<Scalar>{nullptr, false}, nullptr);
}
template <class Scalar>
ATTUNE_INLINE auto values_from(Scalar* kept, int row) {
  Scalar* const values = kept + 2 * row;
  return first_if<kernels::kRowValuesAtRunTime>(kernels::RowValues<Scalar>{values, false}, values);
}
template <class Scalar>
ATTUNE_INLINE auto values_from(const Scalar* kept, int row) {
  const Scalar* const values = kept + 2 * row;
  return first_if<kernels::kRowValuesAtRunTime>(kernels::RowValues<Scalar>{const_cast<Scalar*>(values), true},
                                                values);
}
template <class Scalar>
ATTUNE_INLINE auto values_from(kernels::RowValues<Scalar> kept, int row) {
  return kernels::RowValues<Scalar>{kept.values == nullptr ? nullptr : kept.values + 2 * row, kept.given};
}

// P of one head, in place from scaled scores: rows of queries, starting at `first_query`. `kept` and `end`
// are passed to kernels::softmax_rows.
template <class Scalar, int kQueries, int kKvLen, class Mask, class Stored = std::nullptr_t,
          class End = kernels::NoEnd, class Used = std::integral_constant<int, kQueries>>
[[gnu::noinline]] void masked_softmax(Scalar* scores, const Mask& mask, int head, int first_query,
                                      [[maybe_unused]] Stored kept = {}, End end = {}, Used used = {}) {
  in_blocks<kQueries, kernels::kSoftmaxRows<Scalar>>(
      [&]<int kRows>(int first) ATTUNE_INLINE_LAMBDA {
        for (int i = first; i < first + kRows; ++i) {
          mask.template hide<kKvLen>(head, first_query + i, scores + i * kKvLen);
          mask.template bias<kKvLen>(head, first_query + i, scores + i * kKvLen);
        }
        kernels::softmax_rows<Scalar, kRows, kKvLen>(scores + first * kKvLen,
                                                     values_from<Scalar>(kept, first), end);
      },
      used);
}

template <class Weights>
constexpr void check_weights() {
  static_assert(Holds<Weights::kDense>,
                "attune::scaled_dot_product_attention: weights are a strided view; pass a Tensor, or a view "
                "with contiguous rows");
}

// Work per weight, in multiply-accumulates (execution/slices.hpp).
inline constexpr int kWorkOfSoftmax = 20;

// No dropout of attention weights.
struct AllWeights {
  template <class Weights>
  [[nodiscard]] static const Weights& kept(const Weights& weights) {
    return weights;
  }
  template <class Gradient>
  static void backward(const Gradient&) {}
  static AllWeights from_row(int) { return {}; }
};

// The end of scores for kernels::softmax_rows(): after the valid keys, or `end`.
template <int kKeys, int valid, class End>
ATTUNE_INLINE End end_of_rows(std::integral_constant<int, valid>, End end) {
  return end;
}
template <int kKeys, class End>
ATTUNE_INLINE auto end_of_rows(int valid, End end) {
  return first_if<kernels::kPrefixPays<kKeys>>(kernels::Before{valid},
                                               first_if<(kKeys > kernels::kKeyBlock)>(valid, end));
}

// P of some rows of queries, starting at `first_query`. `kept` is passed to kernels::softmax_rows.
template <class Products = kernels::FloatProducts, class Query, class Key, class Weights, class Scores,
          class Mask, class Stored = std::nullptr_t>
ATTUNE_INLINE void weigh(const Query& query, const Key& key, const Weights& p, const Scores& scores,
                         const Mask& mask, int head, int first_query, Stored kept = {}) {
  using Scalar = typename Weights::Scalar;
  constexpr int kKeys = Weights::cols;
  // With a valid length, the key view already ends at the valid keys.
  constexpr bool kByMask = LeavesOut<Mask, kKeys> && !kIsPart<Key> && !kIsPart<Weights>;
  const auto& skipping = first_if<kByMask>(mask, NoMask{});
  in_blocks<Weights::rows, kByMask ? kernels::kKeyBlock : Weights::rows>(
      [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
        const auto p_rows = p.template rows_at<count>(first);
        const auto end = end_of_keys<kKeys>(skipping, first_query + first, count);
        for_keys<kKeys>(
            0, end,
            [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA {
              scores.template forward<Products>(query.template rows_at<count>(first),
                                                key.template rows_at<keys>(at),
                                                p_rows.template columns<keys>(at));
            },
            []<int>(int) {});
        masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, first_query + first,
                                             values_from<Scalar>(kept, first),
                                             end_of_rows<kKeys>(used_rows(key), end), used_rows(p_rows));
      });
}

/// In place of O that nobody reads, and of its rows and columns.
struct NoOutput {
  static constexpr int rows = 0;
  template <int>
  static NoOutput rows_at(const auto&) {
    return {};
  }
  template <int>
  static NoOutput columns(int) {
    return {};
  }
  friend constexpr NoOutput view(NoOutput nothing) { return nothing; }
  friend constexpr bool finite(NoOutput) { return true; }
};

// scaled_dot_product_attention with the mask and the treatment of zeros from a context. `query` has rows of
// kSeqLen queries, starting at `first_query`. With NoOutput, only weights are computed.
template <int kHeads, int kSeqLen, class Query, class Key, class Value, class Output, class Weights,
          class Scores, class Dropout, AnyContext Call, class Stored = std::nullptr_t>
ATTUNE_INLINE void attend(const Query& query, const Key& key, const Value& value, const Output& output,
                          const Weights& p, const Scores& scores, int head, int first_query,
                          Dropout&& dropout, const Call& context, Stored kept = {}) {
  check_weights<Weights>();
  check_fit<ScoreShape{kHeads, kSeqLen, Weights::cols}, typename Call::Mask>();
  weigh<typename Call::Products>(query, key, p, scores, context.mask(), head, first_query, kept);
  if constexpr (!std::is_same_v<Output, NoOutput>) context.zeros().gemm(dropout.kept(p), value, output);
}

}  // namespace ATTUNE_NAMESPACE::detail
