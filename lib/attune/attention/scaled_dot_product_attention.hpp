// Scaled dot-product attention of one head, forward and backward (Vaswani et al., "Attention Is All You
// Need", 2017, eq. 1).
//
//   S = scale · Q·Kᵀ + mask,   P = softmax(S),   O = P·V
//
//   dP = dO·Vᵀ,   dV = Pᵀ·dO,   dS = P ∘ (dP − rowsum(P ∘ dP)),   dQ = scale · dS·K,   dK = scale · dSᵀ·Q
#pragma once

#include <algorithm>
#include <cstddef>

#include <attune/attention/left_out_keys.hpp>
#include <attune/attention/mask.hpp>
#include <attune/attention/scores.hpp>
#include <attune/core/layer.hpp>
#include <attune/core/weights.hpp>
#include <attune/kernels/ops/softmax.hpp>
#include <attune/kernels/ops/softmax_prefix.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>
#include <attune/layers/dropout.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// 1/√n at compile time, the usual scale for n = d_k: rounded once in float, to 2 ulp in double.
template <class Scalar>
[[nodiscard]] constexpr Scalar inverse_square_root(int n) {
  double root = n > 1 ? n : 1;
  for (int i = 0; i < 64; ++i) root = 0.5 * (root + n / root);  // Newton, to the last bit, at compile time
  return static_cast<Scalar>(1.0 / root);
}

namespace detail {

// The weights P of one head, from scaled scores in place: rows of queries from `first_query` on. `kept` and
// `end` are those of kernels::softmax_rows.
template <class Scalar, int kQueries, int kKvLen, class Mask, class Kept = std::nullptr_t,
          class End = kernels::NoEnd, class Used = std::integral_constant<int, kQueries>>
[[gnu::noinline]] void masked_softmax(Scalar* scores, const Mask& mask, int head, int first_query,
                                      [[maybe_unused]] Kept kept = {}, End end = {}, Used used = {}) {
  in_blocks<kQueries, kernels::kSoftmaxRows<Scalar>>(
      [&]<int kRows>(int first) ATTUNE_INLINE_LAMBDA {
        for (int i = first; i < first + kRows; ++i) {
          mask.template hide<kKvLen>(head, first_query + i, scores + i * kKvLen);
          mask.template bias<kKvLen>(head, first_query + i, scores + i * kKvLen);
        }
        if constexpr (std::is_null_pointer_v<Kept>) {
          kernels::softmax_rows<Scalar, kRows, kKvLen>(scores + first * kKvLen, kept, end);
        } else {
          kernels::softmax_rows<Scalar, kRows, kKvLen>(scores + first * kKvLen, kept + 2 * first, end);
        }
      },
      used);
}

template <class Scalar, int kSeqLen, int kKvLen, class Used = std::integral_constant<int, kSeqLen>,
          class Keys = std::integral_constant<int, kKvLen>>
[[gnu::noinline]] void softmax_backward(Scalar* weights, const Scalar* d_weights, Scalar scale,
                                        Used used = {}, [[maybe_unused]] Keys keys = {}) {
  for (int query = 0; query < used; ++query) {
    Scalar* row = weights + query * kKvLen;
    const Scalar* d_row = d_weights + query * kKvLen;
    if constexpr (std::is_same_v<Keys, int> && kernels::kPaysBefore<kKvLen>) {
      kernels::softmax_row_backward<Scalar, kKvLen>(row, d_row, row, scale, kernels::Before{keys});
    } else {
      kernels::softmax_row_backward<Scalar, kKvLen>(row, d_row, row, scale);
    }
  }
}

template <class Weights>
constexpr void check_weights() {
  static_assert(Weights::kDense,
                "attune::scaled_dot_product_attention: weights are a strided view; pass a Tensor, or a view "
                "whose rows lie one behind the other");
}

// In multiply-accumulates (core/pieces.hpp), of one weight.
inline constexpr int kWorkOfSoftmax = 20, kWorkOfSoftmaxBackward = 6;

// Weights as they are, where MultiHeadAttention with dropout has others.
struct AllWeights {
  template <class Weights>
  [[nodiscard]] static const Weights& kept(const Weights& weights) {
    return weights;
  }
  template <class Gradient>
  static void backward(const Gradient&) {}
  static AllWeights from_row(int) { return {}; }
};

// The functions below, with the terms of products that count said. `query` are rows from `first_query` on, of
// kSeqLen.
template <int kHeads, int kSeqLen, class Query, class Key, class Value, class Context, class Weights,
          class Scores, class Mask, class Dropout, class Terms, class Kept = std::nullptr_t>
ATTUNE_INLINE void attend(const Query& query, const Key& key, const Value& value, const Context& context,
                          const Weights& p, const Scores& scores, const Mask& mask, int head, int first_query,
                          Dropout&& dropout, const Terms& terms, Kept kept = {}) {
  check_weights<Weights>();
  check_fit<ScoreShape{kHeads, kSeqLen, Weights::cols}, Mask>();
  using Scalar = typename Weights::Scalar;
  constexpr int kKeys = Weights::cols;
  // Of a sequence of its true length, keys behind it are left out by themselves.
  constexpr bool kByMask = kLeavesOut<Mask, kKeys> && !kIsPart<Key> && !kIsPart<Weights>;
  const auto weigh = [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
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
          scores.forward(query.template rows_at<count>(first), key.template rows_at<keys>(at),
                         p_rows.template columns<keys>(at));
        },
        []<int>(int) {});
    const auto end_of_row = [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (kIsPart<Key> && kKeys > kernels::kTogether) {
        if constexpr (kernels::kPaysBefore<kKeys>) {
          return kernels::Before{used_rows(key)};
        } else {
          return used_rows(key);
        }
      } else {
        return end;
      }
    }();
    if constexpr (std::is_null_pointer_v<Kept>) {
      masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, first_query + first, kept, end_of_row,
                                           used_rows(p_rows));
    } else {
      masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, first_query + first, kept + 2 * first,
                                           end_of_row, used_rows(p_rows));
    }
  };
  if constexpr (kByMask) {
    in_blocks<Weights::rows, kernels::kTogether>(weigh);
  } else {
    weigh.template operator()<Weights::rows>(0);
  }
  terms.product(dropout.kept(p), value, context);
}

// Gradients of weights of keys that are not there are zero, as far as they are read.
template <class Weights, int kKeys>
ATTUNE_INLINE void clear_keys_behind(std::integral_constant<int, kKeys>, const Weights&) {}
template <class Weights>
[[gnu::noinline]] void clear_keys_behind(int keys, const Weights& weights) {
  constexpr bool kInLanes = kernels::kPaysBefore<Weights::cols>;  // softmax's backward reads no others
  const int end = kInLanes ? kernels::detail::whole_lanes<(std::max)(Weights::cols, kernels::kSumLanes)>(keys)
                           : Weights::cols;
  for (int i = 0; i < used_rows(weights); ++i) {
    for (int j = keys; j < end; ++j) weights(i, j) = typename Weights::Scalar(0);
  }
}

// What multiplied the values in forward, in pieces drawn by blocks of rows.
template <class Weights, class Dropout, class Pieces>
ATTUNE_INLINE auto kept_weights(const Weights& p, Dropout&& dropout, const Pieces& pieces) {
  if constexpr (Pieces::kInOneGo || std::is_same_v<std::remove_cvref_t<Dropout>, AllWeights>) {
    return dropout.kept(p);
  } else {
    pieces.template rows<Weights::rows, kWorkOfDraw * Weights::cols>(
        [&]<int count>(int first) { (void)dropout.from_row(first).kept(p.template rows_at<count>(first)); });
    return View<Tensor<typename Weights::Scalar, Weights::rows, Weights::cols>>(dropout.storage);
  }
}

// dK and dV are assigned, or added with Sum = Accumulate. Keys that the mask hides from all of some queries
// are left out.
template <class Query, class Key, class Value, class Weights, class DContext, class DQuery, class DKey,
          class DValue, class Scalar, class Scores, class Mask, class Dropout, class Terms,
          class Pieces = InOneGo, class Sum = kernels::Assign>
ATTUNE_INLINE void attend_backward(const Query& query, const Key& key, const Value& value, const Weights& p,
                                   const DContext& d_context, const DQuery& dq, const DKey& dk,
                                   const DValue& dv, Scalar* scratch, const Scores& scores, const Mask& mask,
                                   Dropout&& dropout, const Terms& terms, const Pieces& pieces = {},
                                   Sum sum = {}) {
  check_weights<Weights>();
  static_assert(DQuery::col_stride == 1,
                "attune::scaled_dot_product_attention_backward: a row of d_query must be contiguous");
  const View<Weights> dp(scratch);
  const MatrixView<Scalar, DQuery::rows, DQuery::cols> dq_dense(scratch);

  constexpr int kQueries = Weights::rows, kKeys = Weights::cols, kDk = Query::cols, kDv = Value::cols;
  const auto& of_memory = memory_of(pieces);
  const auto all_keys = of_memory.first(key);
  const auto all_values = of_memory.first(value);
  constexpr bool kByMask = kLeavesOut<Mask, kKeys> && !kIsPart<decltype(all_keys)> && !kHasLength<Pieces>;
  // C = A·B: some rows of C at a time, of which counts(row, rows, term, terms) says whether they have terms.
  const auto product = [&]<class C>(const auto& first, const auto& a, const auto& b, const C& c,
                                    const auto& of_terms, const auto& counts, auto how) ATTUNE_INLINE_LAMBDA {
    if constexpr (kByMask) {
      in_blocks<C::rows, kernels::kTogether>([&]<int rows>(int at) ATTUNE_INLINE_LAMBDA {
        product_of_some(
            a.template rows_at<rows>(at), b, c.template rows_at<rows>(at), of_terms,
            [&](int term, int some) ATTUNE_INLINE_LAMBDA { return counts(first + at, rows, term, some); },
            how);
      });
    } else {
      of_terms.product(a, b, c, how);
    }
  };
  const auto of_keys = [&](int key_row, int, int query_row, int queries)
                           ATTUNE_INLINE_LAMBDA { return key_row < kv_end<kKeys>(mask, query_row, queries); };
  const auto of_queries = [&](int query_row, int queries, int key_row, int) ATTUNE_INLINE_LAMBDA {
    return key_row < kv_end<kKeys>(mask, query_row, queries);
  };

  pieces.template tokens<kQueries, kKeys * kDv>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
    const auto d_rows = d_context.template rows_at<count>(first);
    const auto dp_rows = dp.template rows_at<count>(first);
    if (terms.needed()) kernels::clear_zero_rows(d_rows, p.template rows_at<count>(first));
    if constexpr (kByMask) {
      in_blocks<count, kernels::kTogether>([&]<int rows>(int at) ATTUNE_INLINE_LAMBDA {
        for_keys<kKeys>(
            0, end_of_keys<kKeys>(mask, first + at, rows),
            [&]<int keys>(int key_row) ATTUNE_INLINE_LAMBDA {
              kernels::product(d_rows.template rows_at<rows>(at),
                               value.template rows_at<keys>(key_row).transpose(),
                               dp_rows.template rows_at<rows>(at).template columns<keys>(key_row));
            },
            [&]<int keys>(int key_row) ATTUNE_INLINE_LAMBDA {
              set_zero(dp_rows.template rows_at<rows>(at).template columns<keys>(key_row));
            });
      });
    } else {
      kernels::product(d_rows, all_values.transpose(), dp_rows);
      clear_keys_behind(used_rows(all_values), dp_rows);
    }
  });
  const auto kept = kept_weights(p, dropout, pieces);
  of_memory.template tokens<kKeys, kQueries * kDv>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
    product(first, pieces.first(kept).transpose().template rows_at<count>(first), pieces.first(d_context),
            dv.template rows_at<count>(first), kernels::AllTerms{}, of_keys, sum);
  });
  pieces.template tokens<kQueries, (kWorkOfSoftmaxBackward + Scores::template kWorkOfBackward<kDk>)*kKeys>(
      [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
        const auto p_rows = p.template rows_at<count>(first);
        const auto dp_rows = dp.template rows_at<count>(first);
        if constexpr (Pieces::kInOneGo) {
          dropout.backward(dp_rows);
        } else {
          dropout.from_row(first).backward(dp_rows);
        }
        if (terms.needed()) kernels::clear_where_zero(count * kKeys, p_rows.data, dp_rows.data);
        softmax_backward<Scalar, count, kKeys>(p_rows.data, dp_rows.data, scores.scale, used_rows(p_rows),
                                               used_rows(all_keys));
        scores.backward(query.template rows_at<count>(first), all_keys, p_rows, dp_rows);
      });
  pieces.template tokens<kQueries, kKeys * kDk>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
    product(first, p.template rows_at<count>(first), all_keys, dq_dense.template rows_at<count>(first), terms,
            of_queries, kernels::Assign{});
  });
  of_memory.template tokens<kKeys, kQueries * kDk>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
    product(first, pieces.first(p).transpose().template rows_at<count>(first), pieces.first(query),
            dk.template rows_at<count>(first), terms, of_keys, sum);
  });
  pieces([&]() ATTUNE_INLINE_LAMBDA {
    kernels::spread_rows<DQuery::cols>(pieces.template count<DQuery::rows>(), dq_dense.data, dq.data,
                                       DQuery::row_stride);
  });
}

// Gradients of a head's keys and values, where several query heads add to them.
template <class Scalar, int kKeys, int kDk, int kDv>
struct KeyValueSums {
  Tensor<Scalar, kKeys, kDk> d_key;
  Tensor<Scalar, kKeys, kDv> d_value;

  void clear() {
    d_key.set_zero();
    d_value.set_zero();
  }
  template <class Key, class Value>
  void move_to(const Key& key, const Value& value) const {
    kernels::spread_rows<kDk>(kKeys, d_key.data(), key.data, Key::row_stride);
    kernels::spread_rows<kDv>(kKeys, d_value.data(), value.data, Value::row_stride);
  }
};

}  // namespace detail

/// context[seq_len, d_v] = softmax(scale · query·keyᵀ + mask) · value, with query[seq_len, d_k], key[kv_len,
/// d_k], value[kv_len, d_v]; weights[seq_len, kv_len], whose rows lie one behind the other, is written too.
/// Each argument is whatever view() takes. Nothing may overlap. `head` of kHeads is the number a per-head
/// mask is asked for. `dropout.kept(weights)` is what multiplies the values: without one the weights
/// themselves. `scale` is a number, or a CappedScale (scores.hpp). With a mask, a key whose weight is zero
/// has no influence, whatever it holds.
template <int kHeads = 1, class Query, class Key, class Value, class Context, class Weights, class Scale,
          AttentionMask Mask = NoMask, class Dropout = detail::AllWeights>
void scaled_dot_product_attention(const Query& query, const Key& key, const Value& value, Context&& context,
                                  Weights&& weights, const Scale& scale, const Mask& mask = {}, int head = 0,
                                  Dropout&& dropout = {}) {
  const auto v = view(value);
  detail::attend<kHeads, View<std::remove_cvref_t<Weights>>::rows>(
      view(query), view(key), v, view(context), view(weights),
      detail::scores_of<typename std::remove_cvref_t<Weights>::Scalar>(scale), mask, head, 0, dropout,
      detail::terms_of<Mask>(v));
}

/// Gradients of the above. In: query, key, value, weights as forward left them and d_context[seq_len, d_v].
/// Out: d_query[seq_len, d_k], d_key[kv_len, d_k], d_value[kv_len, d_v], overwritten. `weights` is used up
/// (it ends as dS); d_query, d_key and d_value may be the storage of query, key and value. `scratch` has at
/// least seq_len · max(kv_len, d_k) scalars. The mask is forward's: what it hides has zero weights, so
/// nothing flows through it, whatever it holds; nor through a query whose d_context is zero. `dropout` has
/// forward's mask once more.
template <class Query, class Key, class Value, class Weights, class DContext, class DQuery, class DKey,
          class DValue, class Scale, AttentionMask Mask = NoMask, class Dropout = detail::AllWeights>
void scaled_dot_product_attention_backward(const Query& query, const Key& key, const Value& value,
                                           Weights&& weights, const DContext& d_context, DQuery&& d_query,
                                           DKey&& d_key, DValue&& d_value,
                                           typename std::remove_cvref_t<Weights>::Scalar* scratch,
                                           const Scale& scale, const Mask& mask = {},
                                           Dropout&& dropout = {}) {
  const auto q = view(query);
  const auto k = view(key);
  const auto v = view(value);
  const auto p = view(weights);
  detail::attend_backward(q, k, v, p, view(d_context), view(d_query), view(d_key), view(d_value), scratch,
                          detail::scores_of<typename std::remove_cvref_t<Weights>::Scalar>(scale), mask,
                          dropout, detail::terms_of<Mask>(p, q, k, v));
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
