// Attention of one query to keys and values in blocks of kCacheBlock tokens. The length of a stream grows, so
// it is known at run time.
//
// A block of keys is stored feature by feature, [d_k, kCacheBlock], so that packets hold scores of
// neighboring keys. Values are stored row by row. A block is as long as the lanes of the sums in
// ops/reduce.hpp. Sums over blocks that begin at its multiples therefore have the same bits as a whole row.
#pragma once

#include <concepts>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/kv_attention.hpp>
#include <attune/kernels/ops/gemm.hpp>
#include <attune/kernels/ops/softmax.hpp>

namespace ATTUNE_NAMESPACE::kernels {

inline constexpr int kCacheBlock = kSumLanes;

namespace detail {

template <int kDepth, class Scalar>
[[gnu::noinline]] void portable_block_scores(int blocks, const Scalar* query, const Scalar* keys,
                                             Scalar* scores) {
  using P = Packet<Scalar, kCacheBlock>;
  constexpr int kPackets = kCacheBlock / kLanes<P>;
  for (int block = 0; block < blocks; ++block, keys += kDepth * kCacheBlock, scores += kCacheBlock) {
    Array<P, kPackets> total;
    for (int first = 0; first < kDepth; first += kDepthBlock) {
      Array<P, kPackets> sum;
      ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) sum[p] = broadcast<P>(Scalar(0));
      for (int k = first; k < smaller(kDepth, first + kDepthBlock); ++k) {
        ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
          sum[p] = add_multiple(query[k], load<P>(keys + k * kCacheBlock + p * kLanes<P>), sum[p]);
        }
      }
      ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) total[p] = first == 0 ? sum[p] : add(total[p], sum[p]);
    }
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) { store(scores + p * kLanes<P>, total[p]); }
  }
}

}  // namespace detail

/// scores[blocks · kCacheBlock] = query[kDepth] · each key, in the order of ops/gemm.hpp.
template <int kDepth, class Scalar>
ATTUNE_INLINE void block_scores(int blocks, const Scalar* query, const Scalar* keys, Scalar* scores) {
  detail::portable_block_scores<kDepth>(blocks, query, keys, scores);
}
#if ATTUNE_CORTEX_M_FPU
template <int kDepth, std::same_as<float> Scalar>
  requires(kDepth <= kDepthBlock && kDepth != 8)
ATTUNE_INLINE void block_scores(int blocks, const Scalar* query, const Scalar* keys, Scalar* scores) {
  detail::scores_of_blocks(blocks, query, keys, scores, kDepth);
}
template <int kDepth, std::same_as<float> Scalar>
  requires(kDepth == 8)
ATTUNE_INLINE void block_scores(int blocks, const Scalar* query, const Scalar* keys, Scalar* scores) {
  detail::scores_of_eight(blocks, query, keys, scores);
}
#endif

/// Blocks of a row with scaled scores known to be at most kMaxScore from zero. Their exponentials need no
/// check for underflow. Empty: first = end.
struct BoundedBlocks {
  int first, end;
};
/// Differences of two such scores stay above the point where e^x becomes 0 (simd/elementary.hpp), with a
/// margin for the rounding of a product and of a bound.
inline constexpr double kMaxScore = 43;
/// Whether the bound saves time.
template <class Scalar>
inline constexpr bool kLooksAtBounds = ATTUNE_CORTEX_M_FPU&& std::is_same_v<Scalar, float>;

namespace detail {

template <class Scalar>
[[gnu::noinline]] void portable_block_softmax(int blocks, Scalar* row, Scalar scale) {
  constexpr auto kMinusInfinity = -std::numeric_limits<Scalar>::infinity();
  const Scalar* const end = row + blocks * kCacheBlock;
  Scalar best = kMinusInfinity;
  for (const Scalar* from = row; from < end; from += kCacheBlock) {
    best = maximum(largest_of<kCacheBlock>(from), best);
  }
  const Scalar shift = select_less(kMinusInfinity, best, multiply(best, scale), Scalar(0));
  PartialSums<Scalar, kCacheBlock> sums;
  for (Scalar* from = row; from < end; from += kCacheBlock) {
    detail::scale_row<kCacheBlock>(from, scale);
    detail::shifted_exponentials<kCacheBlock>(from, shift);
    sums.add_lanes(0, [from]<class P>(int j) ATTUNE_INLINE_LAMBDA { return load<P>(from + j); });
  }
  const Scalar inverse = softmax_inverse(sums.total());
  for (Scalar* from = row; from < end; from += kCacheBlock) detail::scale_row<kCacheBlock>(from, inverse);
}

}  // namespace detail

/// softmax_rows() of `scale` > 0 times one row of `blocks` · kCacheBlock scalars, at least one block.
template <class Scalar>
ATTUNE_INLINE void block_softmax(int blocks, Scalar* row, Scalar scale, BoundedBlocks = {}) {
  detail::portable_block_softmax(blocks, row, scale);
}
#if ATTUNE_CORTEX_M_FPU
ATTUNE_INLINE void block_softmax(int blocks, float* row, float scale, BoundedBlocks bounded = {}) {
  detail::softmax_of_blocks(blocks, row, scale, bounded.first, bounded.end);
}
#endif

/// Σ x², in order, rounded as multiply_add() rounds.
template <int kSize, class Scalar>
ATTUNE_INLINE Scalar sum_of_few_squares(const Scalar* x) {
  Scalar sum = 0;
  int i = 0;
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float>) {
    for (; i + 2 * detail::kTileSide <= kSize; i += 2 * detail::kTileSide) {
      ATTUNE_UNROLL for (int half = 0; half < 2; ++half) {
        const auto four = load<detail::TileRow>(x + i + half * detail::kTileSide);
        ATTUNE_UNROLL for (const float value : four.lane) sum = multiply_add(value, value, sum);
      }
    }
  }
#endif
  for (; i < kSize; ++i) sum = multiply_add(x[i], x[i], sum);
  return sum;
}

namespace detail {

// Columns from kFrom on, kMax packets of at most kMaxLanes lanes at a time.
template <int kCols, int kFrom, int kMax, int kMaxLanes, class Scalar>
ATTUNE_INLINE void add_weighted_columns(int count, const Scalar* weights, const Scalar* rows, Scalar* sums) {
  using P = Packet<Scalar, kMaxLanes>;
  constexpr int kPackets = smaller(kMax, (kCols - kFrom) / kLanes<P>);
  if constexpr (kPackets > 0) {
    constexpr int kPanel = kPackets * kLanes<P>, kEnd = kFrom + (kCols - kFrom) / kPanel * kPanel;
    for (int col = kFrom; col < kEnd; col += kPanel) {
      Array<P, kPackets> sum;
      ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) sum[p] = load<P>(sums + col + p * kLanes<P>);
      for (int i = 0; i < count; ++i) {
        ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
          sum[p] = add_multiple(weights[i], load<P>(rows + i * kCols + col + p * kLanes<P>), sum[p]);
        }
      }
      ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) store(sums + col + p * kLanes<P>, sum[p]);
    }
    add_weighted_columns<kCols, kEnd, kMax, kMaxLanes>(count, weights, rows, sums);
  } else if constexpr (kFrom < kCols) {
    add_weighted_columns<kCols, kFrom, kMax, kLanes<P> / 2>(count, weights, rows, sums);
  }
}

}  // namespace detail

/// sums[kCols] = 0.
template <int kCols, class Scalar>
ATTUNE_INLINE void clear_sums(Scalar* sums) {
  for (int j = 0; j < kCols; ++j) sums[j] = 0;
}
#if ATTUNE_CORTEX_M_FPU
template <int kCols, std::same_as<float> Scalar>
  requires(kCols % detail::kTileSide == 0)
ATTUNE_INLINE void clear_sums(Scalar* sums) {  // compilers call memset
  using P = detail::TileRow;
  for (int j = 0; j < kCols; j += kLanes<P>) store(sums + j, broadcast<P>(0.0f));
}
#endif

/// sums[kCols] += weights[i] · rows[i, kCols], each `i` added to the sum so far, in rising order.
template <int kCols, class Scalar>
[[gnu::noinline]] void add_weighted_rows(int count, const Scalar* weights, const Scalar* rows, Scalar* sums) {
  constexpr int kMaxPackets = 4;
  int first = 0;
  constexpr int kFrom = [] {
#if ATTUNE_CORTEX_M_FPU
    if (std::is_same_v<Scalar, float>) return kCols / 16 * 16;
#endif
    return 0;
  }();
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float>) {
    if (count == 0) return;
    for (int col = 0; col < kFrom; col += 16) {
      detail::add_sixteen_columns(count, weights, rows + col, sums + col, sizeof(float) * kCols);
    }
    if constexpr (kCols == 8) {
      first = count & -8;
      if (first > 0) detail::add_rows_of_eight(first >> 3, weights, rows, sums);
      if (first == count) return;
    }
  }
#endif
  detail::add_weighted_columns<kCols, kFrom, kMaxPackets, kAnyLanes>(count - first, weights + first,
                                                                     rows + first * kCols, sums);
}

/// The same without terms with a factor of zero (ops/zero_skipping.hpp). Not for speed.
template <int kCols, class Scalar>
[[gnu::noinline]] void add_nonzero_weighted_rows(int count, const Scalar* weights, const Scalar* rows,
                                                 Scalar* sums) {
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < kCols; ++j) {
      const Scalar value = rows[i * kCols + j];
      if (weights[i] != 0 && value != 0) sums[j] = multiply_add(weights[i], value, sums[j]);
    }
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
