// Sums of products in integers with MVE: Cortex-M55.
//
// VMLADAVA.S8 adds 16 products to a register of integers. Of 3 rows × 2 columns six of them go with five
// loads. The transpose multiplies four k of a column by an integer of a row.
#pragma once

#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

#if ATTUNE_MVE

#include <algorithm>
#include <cstdint>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {
namespace detail {

using Int8Term = std::int8_t;
using Int8Sums = std::int32_t[16];

/// A quantized row.
struct Int8Row {
  float scale;
};

/// Rows whose integers have room on the stack, and how many go together.
inline constexpr int kInt8MostTerms = 1024, kInt8RowsAtOnce = 3;

/// Sums of a row, from the first of a packet on.
template <class P>
ATTUNE_INLINE P int8_sums_as_floats(const std::int32_t* sums, const Int8Row&) {
  if constexpr (kIsScalar<P>) {
    return static_cast<float>(*sums);
  } else {
    return P(vcvtq_f32_s32(vld1q_s32(sums)));
  }
}

// Quantizes a row of A, of the transpose times factors, and fills it up with zeros. Answers its scale.
template <bool kFolded, int kLength, int kStep>
ATTUNE_INLINE Int8Row quantize_int8_row(const float* x, const float* factors, std::int8_t* to) {
  constexpr int kFours = kStep == 1 ? kLength / 4 * 4 : 0, kFilled = (kLength + 15) / 16 * 16;
  const auto four = [&](int i) ATTUNE_INLINE_LAMBDA {
    const float32x4_t values = vld1q_f32(x + i);
    return kFolded ? vmulq_f32(values, vld1q_f32(factors + i)) : values;
  };
  const auto one = [&](int i) ATTUNE_INLINE_LAMBDA {
    return kFolded ? multiply(x[i * kStep], factors[i]) : x[i * kStep];
  };
  uint32x4_t most = vdupq_n_u32(0);
  for (int i = 0; i < kFours; i += 4) {
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(four(i)), vdupq_n_u32(0x7FFFFFFF)));
  }
  std::uint32_t largest = vmaxvq_u32(0, most);
  for (int i = kFours; i < kLength; ++i) largest = (std::max)(largest, magnitude_bits(one(i)));
  const RowScale row = row_scale(largest);
  for (int i = 0; i < kFours; i += 4) {
    const float32x4_t rounded = vaddq_n_f32(vmulq_n_f32(four(i), row.inverse), 0x1.8p23f);
    vstrbq_s32(to + i, vreinterpretq_s32_f32(rounded));  // the low bytes are the integers
  }
  for (int i = kFours; i < kLength; ++i) to[i] = round_to_int8(multiply(one(i), row.inverse));
  for (int i = kLength; i < kFilled; ++i) to[i] = 0;
  return {row.scale};
}

// Sums of kRows rows of q and kCols columns of W, from column `first` on.
template <int kRows, int kCols, int kTerms>
ATTUNE_INLINE void int8_block(const std::int8_t* q, const std::int8_t* weights, int first, Int8Sums* sums) {
  std::int32_t sum[std::size_t{kRows}][std::size_t{kCols}]{};
  _Pragma("GCC unroll 4") for (int k = 0; k < kTerms; k += 16) {
    int8x16_t column[std::size_t{kCols}];
    ATTUNE_UNROLL for (int j = 0; j < kCols; ++j) column[j] = vld1q_s8(weights + (first + j) * kTerms + k);
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const int8x16_t row = vld1q_s8(q + r * kTerms + k);
      ATTUNE_UNROLL for (int j = 0; j < kCols; ++j) sum[r][j] = vmladavaq_s8(sum[r][j], row, column[j]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kCols; ++j) sums[r][first + j] = sum[r][j];
  }
}

// Sums of `count` columns.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const std::int8_t* q, const std::int8_t* weights, int count, Int8Sums* sums) {
  int first = 0;
  for (; first < count - 1; first += 2) int8_block<kRows, 2, kTerms>(q, weights, first, sums);
  if (first < count) int8_block<kRows, 1, kTerms>(q, weights, first, sums);
}

// Sums of 16 k over so many columns of W, of which each takes `column` bytes: all k of one row, or eight at a
// time, as registers have room for.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const std::int8_t* q, const std::int8_t* weights, int column,
                                        int columns, Int8Sums* sums) {
  constexpr int kFours = kRows == 1 ? 4 : 2;
  for (int k = 0; k < 16; k += 4 * kFours) {
    int32x4_t sum[std::size_t{kRows}][std::size_t{kFours}];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int j = 0; j < kFours; ++j) sum[r][j] = vdupq_n_s32(0);
    }
    const std::int8_t* from = weights + k;
    for (int i = 0; i < columns; ++i, from += column) {
      ATTUNE_UNROLL for (int j = 0; j < kFours; ++j) {
        const int32x4_t four = vldrbq_s32(from + 4 * j);
        ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
          sum[r][j] = vmlaq_n_s32(sum[r][j], four, q[r * kTerms + i]);
        }
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int j = 0; j < kFours; ++j) vst1q_s32(sums[r] + k + 4 * j, sum[r][j]);
    }
  }
}

}  // namespace detail
}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels

#endif
