// Backward of scaled dot-product attention of one head, over blocks of query rows.
//
//   dP = dO·Vᵀ,   dV = Pᵀ·dO,   dS = P ∘ (dP − rowsum(P ∘ dP)),   dQ = scale · dS·K,   dK = scale · dSᵀ·Q
//
// P is stored, and all queries form one block; or P is recomputed block by block (recomputed_attention.hpp).
// P, dP, dS and dQ consist of whole rows, so their block size is free. dV and dK are sums over queries in a
// product's order: each kDepthBlock queries are summed from zero, and the blocks are added. A product within
// a block continues the sums of the product before it, so every number of rows at a time gives the same bits.
// Blocks of keys would not work: the mask, the row sum in softmax's backward, and dQ need whole rows.
#pragma once

#include <type_traits>

#include <attune/attention/attention_weights.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE::detail {

inline constexpr int kWorkOfSoftmaxBackward = 6;  // per weight, as kWorkOfSoftmax

template <class Scalar, int kSeqLen, int kKvLen, class Used = std::integral_constant<int, kSeqLen>,
          class Keys = std::integral_constant<int, kKvLen>>
[[gnu::noinline]] void softmax_backward(Scalar* weights, const Scalar* d_weights, Scalar scale,
                                        Used used = {}, [[maybe_unused]] Keys keys = {}) {
  for (int query = 0; query < used; ++query) {
    Scalar* row = weights + query * kKvLen;
    const Scalar* d_row = d_weights + query * kKvLen;
    if constexpr (std::is_same_v<Keys, int> && kernels::kPrefixPays<kKvLen>) {
      kernels::softmax_row_backward<Scalar, kKvLen>(row, d_row, row, scale, kernels::Before{keys});
    } else {
      kernels::softmax_row_backward<Scalar, kKvLen>(row, d_row, row, scale);
    }
  }
}

// Zeroes the gradients of weights of missing keys, as far as they are read.
template <class Weights, int kKeys>
ATTUNE_INLINE void clear_keys_behind(std::integral_constant<int, kKeys>, const Weights&) {}
template <class Weights>
[[gnu::noinline]] void clear_keys_behind(int keys, const Weights& weights) {
  const int end = kernels::kPrefixPays<Weights::cols>  // softmax's backward reads no other keys
                      ? kernels::detail::whole_lanes<larger(Weights::cols, kernels::kSumLanes)>(keys)
                      : Weights::cols;
  for (int i = 0; i < used_rows(weights); ++i) {
    for (int j = keys; j < end; ++j) weights(i, j) = typename Weights::Scalar(0);
  }
}

// The weights that multiplied the values in forward. In slices, blocks of rows draw them.
template <class Weights, class Dropout, AnyContext Call>
ATTUNE_INLINE auto kept_weights(const Weights& p, Dropout& dropout, const Call& context) {
  if constexpr (Call::kRunsToCompletion || std::is_same_v<std::remove_const_t<Dropout>, AllWeights>) {
    return dropout.kept(p);
  } else {
    context.in_any_order().template rows<Weights::rows, kWorkOfDraw * Weights::cols>(
        [&]<int count>(int first) { (void)dropout.from_row(first).kept(p.template rows_at<count>(first)); });
    return View<Tensor<typename Weights::Scalar, Weights::rows, Weights::cols>>(dropout.storage);
  }
}

/// The query rows of one step of backward, starting at `first`: with a valid length, a RowRange.
template <int kRows, class First>
struct QueryRows {
  static constexpr int kCount = kRows;
  First first;
  /// The same within these rows alone.
  [[nodiscard]] ATTUNE_INLINE First own() const { return at_start(first); }
};
/// The valid rows among kQueries, starting at `from`.
template <int kRows, int kQueries, AnyContext Call>
ATTUNE_INLINE auto valid_query_rows(const Call& context, int from) {
  auto first = first_if<Call::kHasLength>(
      RowRange{from, clamp(context.template count<kQueries>() - from, 0, kRows)}, from);
  return QueryRows<kRows, decltype(first)>{first};
}

/// Sums that begin or continue, as is known at run time: products of both kinds, and the code around them
/// once.
struct BeginOrContinue {
  bool begins;
};

/// Backward of a head with these operands. `key` and `value` are the valid ones.
template <class Query, class Key, class Value, class DContext, class Scores, AnyContext Call>
struct HeadBackward {
  static constexpr int kQueries = Query::rows, kKeys = Key::rows, kDk = Query::cols, kDv = Value::cols;
  /// Whether keys that the mask hides from a whole block of queries are skipped.
  static constexpr bool kByMask = LeavesOut<typename Call::Mask, kKeys> && !kIsPart<Key> && !Call::kHasLength;
  /// Rows that a product computes together, of a number of rows.
  template <int rows>
  static constexpr int kRowsTogether = kByMask ? kernels::kKeyBlock : rows;
  using Dense = kernels::DenseTermsOf<typename Call::Products>;

  Query query;
  Key key;
  Value value;
  DContext d_context;
  const Scores& scores;
  const Call& context;

  // body<count>(first) over the rows of a step; `first` counts within the step.
  template <int work, class Rows, class Body>
  ATTUNE_INLINE void for_rows(const Rows& rows, const Body& body) const {
    for_rows_of<work>(context.in_any_order(), rows, body);
  }
  template <int work, class Rows, class Body>
  ATTUNE_INLINE static void for_rows_of(const auto& order, const Rows& rows, const Body& body) {
    if constexpr (Rows::kCount < kQueries && Call::kHasLength) {
      order.template rows<Rows::kCount, work>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
        const int left = rows.own().count - first;
        if (left > 0) body.template operator()<count>(RowRange{first, smaller(left, count)});
      });
    } else {
      order.template tokens<Rows::kCount, work>(body);
    }
  }
  // C = A·B, a block of rows of C at a time. Only rows and terms with counts(row, rows, term, terms)
  // contribute.
  template <class A, class B, class C, class ItsTerms, class Counts, class Sum>
  ATTUNE_INLINE static void gemm(const A& a, const B& b, const C& c, const ItsTerms& its_terms,
                                 const Counts& counts, Sum sum) {
    if constexpr (std::is_same_v<Sum, BeginOrContinue>) {
      if (sum.begins) {
        gemm(a, b, c, its_terms, counts, kernels::Assign{});
      } else {
        gemm(a, b, c, its_terms, counts, kernels::NextBlock{});
      }
    } else if constexpr (kByMask) {
      in_blocks<C::rows, kernels::kKeyBlock>([&]<int rows>(int at) ATTUNE_INLINE_LAMBDA {
        product_of_some(
            a.template rows_at<rows>(at), b, c.template rows_at<rows>(at), its_terms,
            [&](int term, int some) ATTUNE_INLINE_LAMBDA { return counts(at, rows, term, some); }, sum);
      });
    } else {
      its_terms.gemm(a, b, c, sum);
    }
  }

  // dP = dO·Vᵀ, stored after the weights.
  template <class Rows, class Weights, class Gradient>
  ATTUNE_INLINE void d_weights(const Rows& rows, const Weights& weights, const Gradient& dp) const {
    for_rows<kKeys*(kDv + Weights::template kWork<Scores, kDk>)>(
        rows, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          const auto p_rows = weights.p.template rows_at<count>(first);
          const auto dp_rows = dp.template rows_at<count>(first);
          const auto d_rows = d_context.template rows_at<count>(rows.first + first);
          weights.template compute<count>(*this, rows.first + first, p_rows);
          if (context.zeros().needed()) kernels::clear_zero_rows(d_rows, p_rows);
          const auto& skipping = first_if<kByMask>(context.mask(), NoMask{});
          in_blocks<count, kRowsTogether<count>>([&]<int some>(int at) ATTUNE_INLINE_LAMBDA {
            const auto some_dp = dp_rows.template rows_at<some>(at);
            for_keys<kKeys>(
                0, end_of_keys<kKeys>(skipping, rows.first + first + at, some),
                [&]<int keys>(int key_row) ATTUNE_INLINE_LAMBDA {
                  Dense::gemm(d_rows.template rows_at<some>(at),
                              value.template rows_at<keys>(key_row).transpose(),
                              some_dp.template columns<keys>(key_row));
                },
                [&]<int keys>(int key_row)
                    ATTUNE_INLINE_LAMBDA { set_zero(some_dp.template columns<keys>(key_row)); });
          });
          clear_keys_behind(used_rows(value), dp_rows);
        });
  }
  // dS, in place of P.
  template <class Rows, class P, class Gradient, class Dropout>
  ATTUNE_INLINE void d_scores(const Rows& rows, const P& p, const Gradient& dp, Dropout& dropout) const {
    for_rows<kWorkOfSoftmaxBackward * kKeys>(rows, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
      const auto p_rows = p.template rows_at<count>(first);
      const auto dp_rows = dp.template rows_at<count>(first);
      if constexpr (Call::kRunsToCompletion) {
        dropout.backward(dp_rows);
      } else {
        dropout.from_row(first).backward(dp_rows);
      }
      if (context.zeros().needed()) kernels::clear_where_zero(count * kKeys, p_rows.data, dp_rows.data);
      softmax_backward<typename P::Scalar, count, kKeys>(p_rows.data, dp_rows.data, scores.scale,
                                                         used_rows(p_rows), used_rows(key));
    });
    scores.backward(*this, rows, p, dp);
  }
  // Adds Aᵀ·B to rows of keys, for A[rows, keys] and B[rows, …] of the rows of a step.
  template <class Rows, class A, class B, class To, class ItsTerms, class Sum>
  ATTUNE_INLINE void to_keys(const Rows& rows, const A& a, const B& b, const To& to,
                             const ItsTerms& its_terms, Sum sum) const {
    const auto counts = [&](int key_row, int, int query_row, int queries) ATTUNE_INLINE_LAMBDA {
      return key_row < kv_end<kKeys>(context.mask(), rows.first + query_row, queries);
    };
    context.keys().in_any_order().template tokens<kKeys, Rows::kCount * To::cols>(
        [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          gemm(
              a.template rows_at<Rows::kCount>(rows.own()).transpose().template rows_at<count>(first),
              b.template rows_at<Rows::kCount>(rows.own()), to.template rows_at<count>(first), its_terms,
              [&](int at, int some, int query_row, int queries)
                  ATTUNE_INLINE_LAMBDA { return counts(first + at, some, query_row, queries); },
              sum);
        });
  }
  // dQ of the rows of a step, written to `to`.
  template <class Rows, class P, class To>
  ATTUNE_INLINE void d_query(const Rows& rows, const P& p, const To& to) const {
    for_rows<kKeys * kDk>(rows, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
      gemm(
          p.template rows_at<count>(first), key, to.template rows_at<count>(first), context.zeros(),
          [&](int at, int queries, int key_row, int) ATTUNE_INLINE_LAMBDA {
            return key_row < kv_end<kKeys>(context.mask(), rows.first + first + at, queries);
          },
          kernels::Assign{});
    });
  }
  // dK of the rows of a step.
  template <class Rows, class P, class DKey, class Sum>
  ATTUNE_INLINE void add_d_key(const Rows& rows, const P& p, const DKey& to, Sum sum) const {
    to_keys(rows, p, query.template rows_at<Rows::kCount>(rows.first), to, context.zeros(), sum);
  }
  // All gradients from the rows of a step: assigns dQ; assigns or adds dK and dV, by `sum`. `room` has the
  // size of the rows of P, and at least the size of dQ's rows if operands are overwritten.
  template <class Rows, class Weights, class Dropout, class Gradients, class Sum>
  ATTUNE_INLINE void step(const Rows& rows, const Weights& weights, typename Weights::Scalar* room,
                          Dropout& dropout, const Gradients& to, Sum sum) const {
    constexpr int kRows = Rows::kCount;
    const MatrixView<typename Weights::Scalar, kRows, kKeys> dp(room);
    const auto d_rows = d_context.template rows_at<kRows>(rows.first);
    d_weights(rows, weights, dp);
    to_keys(rows, kept_weights(weights.p, dropout, context), d_rows, to.d_value, Dense{}, sum);
    d_scores(rows, weights.p, dp, dropout);
    to.of_scores(*this, rows, weights.p, room, sum);
  }
};

template <class Query, class Key, class Value, class DContext, class Scores, AnyContext Call>
ATTUNE_INLINE auto backward_of_head(const Query& query, const Key& key, const Value& value,
                                    const DContext& d_context, const Scores& scores, const Call& context) {
  return HeadBackward<Query, Key, Value, DContext, Scores, Call>{query,     key,    value,
                                                                 d_context, scores, context};
}

/// P of all queries, from forward.
template <class P>
struct StoredWeights {
  using Scalar = typename P::Scalar;
  P p;
  // Work per weight, in multiply-accumulates.
  template <class Scores, int kDk>
  static constexpr int kWork = 0;
  template <int count>
  ATTUNE_INLINE static void compute(const auto&, auto, const auto&) {}
};
/// Sinks for gradients that may overwrite the operands: dQ then comes last, by way of `room`.
template <class DQuery, class DKey, class DValue>
struct GradientsOverOperands {
  DQuery d_query;
  DKey d_key;
  DValue d_value;

  /// dQ and dK from dS.
  template <class Rows, class Scalar, class Sum>
  ATTUNE_INLINE void of_scores(const auto& head, const Rows& rows, const auto& ds, Scalar* room,
                               Sum sum) const {
    const MatrixView<Scalar, Rows::kCount, DQuery::cols> dq(room);
    head.d_query(rows, ds, dq);
    head.add_d_key(rows, ds, d_key, sum);
    head.context.stage([&]() ATTUNE_INLINE_LAMBDA {
      kernels::spread_rows<DQuery::cols>(head.context.template count<DQuery::rows>(), dq.data, d_query.data,
                                         DQuery::row_stride);
    });
  }
};

/// Backward of all queries as one block. `weights` has their P[seq_len, kv_len], stored or to be recomputed,
/// which becomes dS. Assigns dK and dV, or adds to them with Sum = Accumulate. `scratch` has room for the
/// larger of P and dQ.
template <class Query, class Key, class Value, class Weights, class DContext, class DQuery, class DKey,
          class DValue, class Scalar, class Scores, class Dropout, AnyContext Call,
          class Sum = kernels::Assign>
ATTUNE_INLINE void attend_backward(const Query& query, const Key& key, const Value& value,
                                   const Weights& weights, const DContext& d_context, const DQuery& dq,
                                   const DKey& dk, const DValue& dv, Scalar* scratch, const Scores& scores,
                                   Dropout&& dropout, const Call& context, Sum sum = {}) {
  check_weights<decltype(weights.p)>();
  static_assert(Holds<(DQuery::col_stride == 1)>,
                "attune::scaled_dot_product_attention_backward: a row of "
                "d_query must be contiguous");
  const auto keys = context.keys().first(key);
  const auto values = context.keys().first(value);
  const auto head = backward_of_head(query, keys, values, d_context, scores, context);
  const auto rows = valid_query_rows<Query::rows, Query::rows>(context, 0);
  head.step(rows, weights, scratch, dropout, GradientsOverOperands<DQuery, DKey, DValue>{dq, dk, dv}, sum);
}

// Gradients of a head's keys and values, summed over several query heads or blocks of queries. of_key() and
// of_value() are the sinks of a query head.
template <class Scalar, int kKeys, int kDk, int kDv>
struct KeyValueSums {
  Tensor<Scalar, kKeys, kDk> d_key;
  Tensor<Scalar, kKeys, kDv> d_value;
  using Sum = kernels::Accumulate;

  auto of_key(const auto&) { return view(d_key); }
  auto of_value(const auto&) { return view(d_value); }
  void clear(const auto& context) {
    context.stage([&] {
      d_key.set_zero();
      d_value.set_zero();
    });
  }
  template <class Key, class Value>
  void move_to(const Key& key, const Value& value, const auto& context) const {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      kernels::spread_rows<kDk>(used_rows(key), d_key.data(), key.data, Key::row_stride);
      kernels::spread_rows<kDv>(used_rows(value), d_value.data(), value.data, Value::row_stride);
    });
  }
};
// The same for one query head, whose gradients take the place of keys and values.
struct NoKeyValueSums {
  using Sum = kernels::Assign;

  static auto of_key(const auto& key) { return key; }
  static auto of_value(const auto& value) { return value; }
  static void clear(const auto&) {}
  static void move_to(const auto&...) {}
};

}  // namespace ATTUNE_NAMESPACE::detail
