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
template <class Scalar, class Stored>
ATTUNE_INLINE auto values_from(Stored kept, [[maybe_unused]] int row) {
  if constexpr (kernels::kRowValuesAtRunTime) {
    if constexpr (std::is_null_pointer_v<Stored>) {
      return kernels::RowValues<Scalar>{nullptr, false};
    } else {
      return kernels::RowValues<Scalar>{const_cast<Scalar*>(kept) + 2 * row,
                                        std::is_same_v<Stored, const Scalar*>};
    }
  } else if constexpr (std::is_null_pointer_v<Stored>) {
    return kept;
  } else {
    return kept + 2 * row;
  }
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

// P of some rows of queries, starting at `first_query`. `kept` is passed to kernels::softmax_rows.
template <class Products = kernels::FloatProducts, class Query, class Key, class Weights, class Scores,
          class Mask, class Stored = std::nullptr_t>
ATTUNE_INLINE void weigh(const Query& query, const Key& key, const Weights& p, const Scores& scores,
                         const Mask& mask, int head, int first_query, Stored kept = {}) {
  using Scalar = typename Weights::Scalar;
  constexpr int kKeys = Weights::cols;
  // With a valid length, the key view already ends at the valid keys.
  constexpr bool kByMask = LeavesOut<Mask, kKeys> && !kIsPart<Key> && !kIsPart<Weights>;
  const auto some = [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
    const auto p_rows = p.template rows_at<count>(first);
    const auto end = [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (kByMask) {
        return end_of_keys<kKeys>(mask, first_query + first, count);
      } else {
        return kernels::NoEnd{};
      }
    }();
    for_keys<kKeys>(
        0, end,
        [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA {
          scores.template forward<Products>(query.template rows_at<count>(first),
                                            key.template rows_at<keys>(at),
                                            p_rows.template columns<keys>(at));
        },
        []<int>(int) {});
    const auto end_of_row = [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (kIsPart<Key> && kernels::kPrefixPays<kKeys>) {
        return kernels::Before{used_rows(key)};
      } else if constexpr (kIsPart<Key> && kKeys > kernels::kKeyBlock) {
        return used_rows(key);
      } else {
        return end;
      }
    }();
    masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, first_query + first,
                                         values_from<Scalar>(kept, first), end_of_row, used_rows(p_rows));
  };
  if constexpr (kByMask) {
    in_blocks<Weights::rows, kernels::kKeyBlock>(some);
  } else {
    some.template operator()<Weights::rows>(0);
  }
}

/// In place of O that nobody reads, and of its rows and columns.
struct NoOutput {
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
