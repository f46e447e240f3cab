// Backward of one head whose weights were not kept (Dao et al., "FlashAttention: Fast and Memory-Efficient
// Exact Attention with IO-Awareness", 2022): they are computed once more, some rows of queries at a time,
// from what forward kept of each row.
//
//   S = scale · Q·Kᵀ + mask,   P = e^(S − max) / sum
//
// then as in scaled_dot_product_attention.hpp, with its bits. P, dP, dS and dQ have whole rows, whatever
// their number. dV = Pᵀ·dO and dK = scale · dSᵀ·Q are sums over queries, whose order is a product's: from
// zero for kDepthBlock of them, block added to block. Within a block the sums go on from one product to the
// next, so that any number of rows at a time has the same bits. Blocks of keys would have whole sums over
// queries, but no whole rows: for those there is a mask, the sum in softmax's backward, and dQ.
#pragma once

#include <attune/attention/scaled_dot_product_attention.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// How many queries have their weights in memory at a time, of seq_len.
constexpr int recomputed_queries(int seq_len) { return (std::min)(seq_len, 8); }

/// Scratch beside recomputed_queries() rows of weights.
template <class ScalarType, int kQueries, int kKvLen, int kDk, int kDv, bool kShared>
struct RecomputeScratch : KeyValueSums<ScalarType, kKvLen, kDk, kDv> {
  using Scalar = ScalarType;
  using Sums = KeyValueSums<Scalar, kKvLen, kDk, kDv>;
  static constexpr bool kOneBlock = kQueries <= kernels::kDepthBlock && !kShared;
  Tensor<Scalar, recomputed_queries(kQueries), kKvLen> d_weights;                 // dP of some queries
  [[no_unique_address]] std::conditional_t<kOneBlock, NoParameters, Sums> block;  // of one block of queries

  // Where a block's sums are made.
  Sums& of_block() {
    if constexpr (kOneBlock) {
      return *this;
    } else {
      return block;
    }
  }
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
                                              const Pieces& pieces, Sum = {}) {
  using Scalar = typename Scratch::Scalar;
  constexpr int kQueries = Query::rows, kKeys = Key::rows, kDk = Query::cols, kDv = Value::cols;
  constexpr int kSome = recomputed_queries(kQueries);
  // Of a sequence of its true length: keys behind it are left out by themselves, and of the queries those
  // that are computed together with the last one are zeros, with weights of zero.
  constexpr bool kHasLength = detail::kHasLength<Pieces>;
  const auto queries = pieces.template count<kQueries>();
  const auto all_keys = memory_of(pieces).first(key);
  const auto all_values = memory_of(pieces).first(value);
  if constexpr (kHasLength) {
    pieces([&] {
      for (int i = queries; i < kQueries && i % kSome != 0; ++i) {
        set_zero(query.template rows_at<1>(i));
        set_zero(d_context.template rows_at<1>(i));
      }
    });
  }
  // One more than the last key that any of some queries attends to, where blocks of keys are left out.
  const auto end_for = [&](int first, int count) ATTUNE_INLINE_LAMBDA {
    if constexpr (kIsPart<decltype(all_keys)> && kKeys > kernels::kTogether) {
      return (std::min)(kv_end<kKeys>(mask, first, count), used_rows(all_keys));
    } else {
      return end_of_keys<kKeys>(mask, first, count);
    }
  };

  // kRows queries from `from` on, whose terms of dK and dV begin sums, or go on with them.
  const auto some = [&]<int kRows>(int from, auto& sums, auto epilogue) {
    const MatrixView<Scalar, kRows, kKeys> p(weights);
    const auto dp = view(scratch.d_weights).template rows_at<kRows>(0);
    const auto q = query.template rows_at<kRows>(from);
    const auto d_rows = d_context.template rows_at<kRows>(from);
    const auto dropout = dropout_from(from);
    pieces.template rows<kRows, kKeys*(kDk + kWorkOfSoftmax + Scores::kWork)>(
        [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
          const auto p_rows = p.template rows_at<count>(first);
          const auto end = end_for(from + first, count);
          for_keys<kKeys>(
              0, end,
              [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA {
                scores.forward(q.template rows_at<count>(first), all_keys.template rows_at<keys>(at),
                               p_rows.template columns<keys>(at));
              },
              []<int>(int) {});
          const auto end_of_row = [&]() ATTUNE_INLINE_LAMBDA {
            if constexpr (kIsPart<decltype(all_keys)> && kernels::kPaysBefore<kKeys>) {
              return kernels::Before{used_rows(all_keys)};
            } else {
              return end;
            }
          }();
          masked_softmax<Scalar, count, kKeys>(p_rows.data, mask, head, from + first,
                                               kept + 2 * (from + first), end_of_row);
          if constexpr (kHasLength) {
            for (int i = (std::max)(queries - from - first, 0); i < count; ++i) {
              set_zero(p_rows.template rows_at<1>(i));
            }
          }
          if (terms.needed()) kernels::clear_zero_rows(d_rows.template rows_at<count>(first), p_rows);
        });
    const auto dropped = kept_weights(p, dropout, pieces);
    // Gradients of keys, which have no terms of queries that they are hidden from.
    const auto end = end_for(from, kRows);
    const auto of_keys = [&]<int count>(int first, const auto& to, const auto& product) ATTUNE_INLINE_LAMBDA {
      for_keys<count>(
          first, end,
          [&]<int keys>(int at)
              ATTUNE_INLINE_LAMBDA { product.template operator()<keys>(at, to.template rows_at<keys>(at)); },
          [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA {
            if constexpr (std::is_same_v<decltype(epilogue), kernels::Assign>) {
              set_zero(to.template rows_at<keys>(at));
            }
          });
    };
    pieces.template rows<kKeys, kRows * kDv>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      of_keys.template operator()<count>(
          first, view(sums.d_value), [&]<int keys>(int at, const auto& to) ATTUNE_INLINE_LAMBDA {
            kernels::product(dropped.transpose().template rows_at<keys>(at), d_rows, to, epilogue);
          });
    });
    pieces.template rows<kRows, kKeys*(kDv + kWorkOfSoftmaxBackward + Scores::template kWorkOfBackward<kDk>)>(
        [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
          const auto p_rows = p.template rows_at<count>(first);
          const auto dp_rows = dp.template rows_at<count>(first);
          for_keys<kKeys>(
              0, end_for(from + first, count),
              [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA {
                kernels::product(d_rows.template rows_at<count>(first),
                                 all_values.template rows_at<keys>(at).transpose(),
                                 dp_rows.template columns<keys>(at));
              },
              [&]<int keys>(int at) ATTUNE_INLINE_LAMBDA { set_zero(dp_rows.template columns<keys>(at)); });
          clear_keys_behind(used_rows(all_values), dp_rows);
          dropout.from_row(first).backward(dp_rows);
          if (terms.needed()) kernels::clear_where_zero(count * kKeys, p_rows.data, dp_rows.data);
          softmax_backward<Scalar, count, kKeys>(p_rows.data, dp_rows.data, scores.scale, {},
                                                 used_rows(all_keys));
          scores.backward(q.template rows_at<count>(first), all_keys, p_rows, dp_rows);
        });
    pieces.template rows<kKeys, kRows * kDk>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      of_keys.template operator()<count>(
          first, view(sums.d_key), [&]<int keys>(int at, const auto& to) ATTUNE_INLINE_LAMBDA {
            terms.product(p.transpose().template rows_at<keys>(at), q, to, epilogue);
          });
    });
    pieces.template rows<kRows, kKeys * kDk>([&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      terms.product(p.template rows_at<count>(first), all_keys, q.template rows_at<count>(first));
    });
  };
  // How many of `most` queries from `first` on there are.
  const auto there_are = [&]<int most>(int first) ATTUNE_INLINE_LAMBDA {
    if constexpr (kHasLength) {
      return std::clamp(queries - first, 0, most);
    } else {
      return std::integral_constant<int, most>{};
    }
  };
  // A block of as many queries as a product sums from zero.
  const auto block = [&]<int kRows>(int from, auto& sums) {
    some.template operator()<(std::min)(kSome, kRows)>(from, sums, kernels::Assign{});
    if constexpr (kRows > kSome) {
      in_blocks<kRows - kSome, kSome>(
          [&]<int rows>(int first) ATTUNE_INLINE_LAMBDA {
            some.template operator()<rows>(from + kSome + first, sums, kernels::Continue{});
          },
          there_are.template operator()<kRows - kSome>(from + kSome));
    }
  };
  const auto add_block = [&]<int kRows>(int from) {
    auto& sums = scratch.of_block();
    block.template operator()<kRows>(from, sums);
    pieces([&]() ATTUNE_INLINE_LAMBDA {
      kernels::add_to(kKeys * kDk, sums.d_key.data(), scratch.d_key.data());
      kernels::add_to(kKeys * kDv, sums.d_value.data(), scratch.d_value.data());
    });
  };
  constexpr bool kAssigns = std::is_same_v<Sum, kernels::Assign>;
  constexpr int kBlock = (std::min)(kQueries, kernels::kDepthBlock);
  if constexpr (kAssigns) {
    block.template operator()<kBlock>(0, static_cast<typename Scratch::Sums&>(scratch));
  } else {
    add_block.template operator()<kBlock>(0);
  }
  if constexpr (kQueries > kBlock) {
    in_blocks<kQueries - kBlock, kBlock>(
        [&]<int kRows>(int from)
            ATTUNE_INLINE_LAMBDA { add_block.template operator()<kRows>(kBlock + from); },
        there_are.template operator()<kQueries - kBlock>(kBlock));
  }
  if constexpr (kAssigns) {
    pieces([&]() ATTUNE_INLINE_LAMBDA { scratch.move_to(key, value); });
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
