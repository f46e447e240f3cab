// Backward of one head whose weights were not kept (Dao et al., "FlashAttention: Fast and Memory-Efficient
// Exact Attention with IO-Awareness", 2022): they are computed once more, some rows of queries at a time,
// from what forward kept of each row.
//
//   S = scale · Q·Kᵀ + mask,   P = e^(S − max) / sum
//
// then as in scaled_dot_product_attention.hpp, with its bits. P, dP, dS and dQ have whole rows, whatever
// their number. dV = Pᵀ·dO and dK = scale · dSᵀ·Q are sums over queries, which products make in blocks of
// kDepthBlock, added one after the other: so blocks of as many queries, one product each, add up in the same
// order. Blocks of keys would have whole sums over queries, but no whole rows: for those there is a mask, the
// sum in softmax's backward, and dQ.
#pragma once

#include <attune/attention/scaled_dot_product_attention.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// How many queries have their weights in memory at a time, of seq_len.
constexpr int recomputed_queries(int seq_len) { return std::min(seq_len, kernels::kDepthBlock); }

/// Scratch beside recomputed_queries() rows of weights.
template <class ScalarType, int kAtOnce, int kKvLen, int kDk, int kDv>
struct RecomputeScratch : KeyValueSums<ScalarType, kKvLen, kDk, kDv> {
  using Scalar = ScalarType;
  static constexpr int kQueriesAtOnce = kAtOnce;
  Tensor<Scalar, kAtOnce, kKvLen> d_weights;  // dP of some queries
};

/// Gradients of query[seq_len, d_k], key[kv_len, d_k] and value[kv_len, d_v] from d_context[seq_len, d_v],
/// each in its place; with Sum = Accumulate those of key and value are added to the scratch's sums and stay
/// there. `kept` is what masked_softmax kept of the head's rows, `mask` forward's, `weights` room
/// for recomputed_queries(seq_len) · kv_len scalars. dropout_from(query) drops weights of rows from there on.
template <class Query, class Key, class Value, class DContext, class Scratch, class Scores, class Mask,
          class DropoutFrom, class Terms, class Pieces, class Sum = kernels::Assign>
ATTUNE_INLINE void recomputed_attend_backward(const Query& query, const Key& key, const Value& value,
                                              const DContext& d_context, typename Scratch::Scalar* weights,
                                              Scratch& scratch, const Scores& scores, const Mask& mask,
                                              int head, const typename Scratch::Scalar* kept,
                                              const DropoutFrom& dropout_from, const Terms& terms,
                                              const Pieces& pieces, Sum sum = {}) {
  using Scalar = typename Scratch::Scalar;
  constexpr int kQueries = Query::rows, kKeys = Key::rows, kDk = Query::cols, kDv = Value::cols;
  const auto dk = view(scratch.d_key);
  const auto dv = view(scratch.d_value);

  // kRows queries from `from` on, whose terms of dK and dV are assigned or added.
  const auto block = [&]<int kRows>(int from, auto epilogue) {
    const MatrixView<Scalar, kRows, kKeys> p(weights);
    const auto q = query.template rows_at<kRows>(from);
    const auto d_rows = d_context.template rows_at<kRows>(from);
    const auto dropout = dropout_from(from);
    pieces.template rows<kRows, kKeys*(kDk + kWorkOfSoftmax + Scores::kWork)>(
        [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
          const auto p_rows = p.template rows_at<count>(first);
          scores.forward(q.template rows_at<count>(first), key, p_rows);
          masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, from + first,
                                               kept + 2 * (from + first));
          if (terms.needed()) kernels::clear_zero_rows(d_rows.template rows_at<count>(first), p_rows);
        });
    const auto dropped = kept_weights(p, dropout, pieces);
    pieces.template rows<kKeys, kRows * kDv>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      kernels::product(dropped.transpose().template rows_at<count>(first), d_rows,
                       dv.template rows_at<count>(first), epilogue);
    });
    in_blocks<kRows, Scratch::kQueriesAtOnce>([&]<int kSome>(int some) ATTUNE_INLINE_LAMBDA {
      pieces
          .template rows<kSome, kKeys*(kDv + kWorkOfSoftmaxBackward + Scores::template kWorkOfBackward<kDk>)>(
              [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
                const auto p_rows = p.template rows_at<count>(some + first);
                const auto dp = view(scratch.d_weights).template rows_at<count>(0);
                kernels::product(d_rows.template rows_at<count>(some + first), value.transpose(), dp);
                dropout.from_row(some + first).backward(dp);
                if (terms.needed()) kernels::clear_where_zero(count * kKeys, p_rows.data, dp.data);
                softmax_backward<Scalar, count, kKeys>(p_rows.data, dp.data, scores.scale);
                scores.backward(q.template rows_at<count>(some + first), key, p_rows, dp);
              });
    });
    pieces.template rows<kKeys, kRows * kDk>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      terms.product(p.transpose().template rows_at<count>(first), q, dk.template rows_at<count>(first),
                    epilogue);
    });
    pieces.template rows<kRows, kKeys * kDk>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      terms.product(p.template rows_at<count>(first), key, q.template rows_at<count>(first));
    });
  };
  constexpr int kBlock = recomputed_queries(kQueries), kRest = kQueries % kBlock;
  block.template operator()<kBlock>(0, sum);
  if constexpr (kQueries >= 2 * kBlock) {
    for (int from = kBlock; from < kQueries - kRest; from += kBlock) {
      block.template operator()<kBlock>(from, kernels::Accumulate{});
    }
  }
  if constexpr (kRest > 0) block.template operator()<kRest>(kQueries - kRest, kernels::Accumulate{});
  if constexpr (std::is_same_v<Sum, kernels::Assign>) {
    pieces([&]() ATTUNE_INLINE_LAMBDA { scratch.move_to(key, value); });
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
