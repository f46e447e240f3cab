// Backward of one head without stored weights (Dao et al., "FlashAttention: Fast and Memory-Efficient Exact
// Attention with IO-Awareness", 2022). It recomputes P for a block of queries at a time, from two numbers per
// row that forward kept. If all queries fit into the memory of such blocks, they are one block, and gradients
// need no sums beside their operands.
//
//   S = scale · Q·Kᵀ + mask,   P = e^(S − max) / sum
//
// The rest follows backward of stored weights (attention_backward.hpp), with the same bits.
#pragma once

#include <attune/attention/attention_backward.hpp>
#include <attune/core/memory.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Number of queries, out of seq_len, whose weights are in memory at once. It is a block of terms in the sums
/// of dK and dV, which integers quantize by itself, so it is the same on every target.
constexpr int recomputed_queries(int seq_len) { return smaller(seq_len, 8); }

/// Scratch in addition to recomputed_queries() rows of weights. kShared: heads share keys and values.
template <class ScalarType, int kQueries, int kKvLen, int kDk, int kDv, bool kShared>
struct RecomputeInBlocks : KeyValueSums<ScalarType, kKvLen, kDk, kDv> {
  using Scalar = ScalarType;
  using Sums = KeyValueSums<Scalar, kKvLen, kDk, kDv>;
  using Sum = std::conditional_t<kShared, kernels::Accumulate, kernels::Assign>;
  Tensor<Scalar, recomputed_queries(kQueries), kKvLen> d_weights;  // dP of a block of queries
  [[no_unique_address]] MemberIf<kShared || (kQueries > kernels::kDepthBlock), Sums, 20>
      block;  // of one block

  void clear(const auto& context) {
    if constexpr (kShared) Sums::clear(context);
  }
  // Adds the sums of a block.
  void add_block(const auto& keys, const auto& values) {
    const Sums& sums = of_block();
    kernels::add_to(used_rows(keys) * kDk, sums.d_key.data(), this->d_key.data());
    kernels::add_to(used_rows(values) * kDv, sums.d_value.data(), this->d_value.data());
  }
  // The memory for the sums of a block.
  Sums& of_block() { return existing(block, static_cast<Sums&>(*this)); }
};

/// The same in one block: P, besides room for the larger of P and dQ.
template <class Scalar, int kQueries, int kKvLen, int kDk, int kDv, bool kShared>
struct RecomputeAtOnce : std::conditional_t<kShared, KeyValueSums<Scalar, kKvLen, kDk, kDv>, NoKeyValueSums> {
  Tensor<Scalar, kQueries, kKvLen> weights;
};

/// P of some queries, recomputed from the row values that masked_softmax kept.
template <class P>
struct RecomputedWeights {
  using Scalar = typename P::Scalar;
  P p;
  int head;
  const Scalar* kept;
  template <class Scores, int kDk>
  static constexpr int kWork = kDk + kWorkOfSoftmax + Scores::kWork;

  template <int count>
  ATTUNE_INLINE void compute(const auto& backward, auto first, const auto& p_rows) const {
    using Products = typename std::remove_cvref_t<decltype(backward.context)>::Products;
    weigh<Products>(backward.query.template rows_at<count>(first), backward.key, p_rows, backward.scores,
                    backward.context.mask(), head, first, kept + 2 * first);
  }
};
/// dQ overwrites Q; dK and dV go to sums.
template <class DQuery, class DKey, class DValue>
struct GradientsBesideOperands {
  DQuery d_query;
  DKey d_key;
  DValue d_value;

  /// dQ and dK from dS.
  template <class Rows, class Sum>
  ATTUNE_INLINE void of_scores(const auto& head, const Rows& rows, const auto& ds, auto*, Sum sum) const {
    head.add_d_key(rows, ds, d_key, sum);
    head.d_query(rows, ds, d_query.template rows_at<Rows::kCount>(rows.first));
  }
};

/// Gradients of query[seq_len, d_k], key[kv_len, d_k] and value[kv_len, d_v] from d_context[seq_len, d_v]: of
/// query in its place, of key and value in the sums in scratch, assigned or added by Scratch::Sum. `kept` has
/// the row values that masked_softmax kept. The mask is forward's. `weights` has room for
/// recomputed_queries(seq_len) · kv_len scalars. dropout_from(query) drops weights of the rows from `query`
/// on.
template <class Query, class Key, class Value, class DContext, class Scratch, class Scores, class DropoutFrom,
          AnyContext Call>
ATTUNE_INLINE void recomputed_attend_backward(const Query& query, const Key& key, const Value& value,
                                              const DContext& d_context, typename Scratch::Scalar* weights,
                                              Scratch& scratch, const Scores& scores, int head,
                                              const typename Scratch::Scalar* kept,
                                              const DropoutFrom& dropout_from, const Call& context) {
  using Scalar = typename Scratch::Scalar;
  constexpr int kQueries = Query::rows, kKeys = Key::rows;
  constexpr int kSome = recomputed_queries(kQueries);
  const auto queries = context.template count<kQueries>();
  const auto keys = context.keys().first(key);
  const auto values = context.keys().first(value);
  const auto backward = backward_of_head(query, keys, values, d_context, scores, context);

  // kRows queries, starting at `from`. Their terms begin the sums of dK and dV, or continue them.
  const auto some = [&]<int kRows>(int from, auto& sums, auto sum) {
    using P = MatrixView<Scalar, kRows, kKeys>;
    const auto rows = valid_query_rows<kRows, kQueries>(context, from);
    const auto dropout = dropout_from(from);
    const auto d_key = view(sums.d_key);
    const auto d_value = view(sums.d_value);
    backward.step(rows, RecomputedWeights<P>{P(weights), head, kept}, scratch.d_weights.data(), dropout,
                  GradientsBesideOperands<Query, decltype(d_key), decltype(d_value)>{query, d_key, d_value},
                  sum);
  };
  // A block of as many queries as a product sums from zero; skips queries after the last valid one.
  const auto block = [&]<int kRows>(int from, auto& sums) {
    if constexpr (kRows <= kSome) {
      some.template operator()<kRows>(from, sums, kernels::Assign{});
    } else {
      in_blocks<kRows, kSome>(
          [&]<int rows>(int first) ATTUNE_INLINE_LAMBDA {
            context.inside([&]() ATTUNE_INLINE_LAMBDA {
              some.template operator()<rows>(from + first, sums, BeginOrContinue{first == 0});
            });
          },
          queries - from);
    }
  };
  const auto add_block = [&]<int kRows>(int from) {
    block.template operator()<kRows>(from, scratch.of_block());
    context.stage([&]() ATTUNE_INLINE_LAMBDA { scratch.add_block(keys, values); });
  };
  constexpr int kBlock = smaller(kQueries, kernels::kDepthBlock);
  if constexpr (std::is_same_v<typename Scratch::Sum, kernels::Assign>) {
    block.template operator()<kBlock>(0, static_cast<typename Scratch::Sums&>(scratch));
  } else {
    add_block.template operator()<kBlock>(0);
  }
  if constexpr (kQueries > kBlock) {
    in_blocks<kQueries - kBlock, kBlock>(
        [&]<int kRows>(int from) ATTUNE_INLINE_LAMBDA {
          context.inside([&]() ATTUNE_INLINE_LAMBDA { add_block.template operator()<kRows>(kBlock + from); });
        },
        queries - kBlock);
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
