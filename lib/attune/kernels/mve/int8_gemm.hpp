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

// Quantizes a row of A, of the transpose times factors, and fills it up with zeros. Answers its scale.
template <bool kFolded, int kLength, int kStep>
ATTUNE_INLINE float quantize_int8_row(const float* x, const float* factors, std::int8_t* to) {
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
  return row.scale;
}

// Sums of kRows rows of q and kCols columns of W, [kRows][16].
template <int kRows, int kCols, int kTerms>
ATTUNE_INLINE void int8_block(const std::int8_t* q, const std::int8_t* weights, std::int32_t (*sums)[16]) {
  std::int32_t sum[std::size_t{kRows}][std::size_t{kCols}]{};
  _Pragma("GCC unroll 4") for (int k = 0; k < kTerms; k += 16) {
    int8x16_t column[std::size_t{kCols}];
    ATTUNE_UNROLL for (int j = 0; j < kCols; ++j) column[j] = vld1q_s8(weights + j * kTerms + k);
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const int8x16_t row = vld1q_s8(q + r * kTerms + k);
      ATTUNE_UNROLL for (int j = 0; j < kCols; ++j) sum[r][j] = vmladavaq_s8(sum[r][j], row, column[j]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kCols; ++j) sums[r][j] = sum[r][j];
  }
}

// Sums of kRows rows and 16 k over columns, which stand `column` bytes apart: all k of one row, or eight at a
// time, as registers have room for.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_block(const std::int8_t* q, int terms, const std::int8_t* weights,
                                         int column, std::int32_t (*sums)[16]) {
  constexpr int kFours = kRows == 1 ? 4 : 2;
  for (int k = 0; k < 16; k += 4 * kFours) {
    int32x4_t sum[std::size_t{kRows}][std::size_t{kFours}];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int j = 0; j < kFours; ++j) sum[r][j] = vdupq_n_s32(0);
    }
    const std::int8_t* from = weights + k;
    for (int i = 0; i < terms; ++i, from += column) {
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

/// Whether rows have room on the stack.
constexpr bool fits_int8_rows(int depth) { return depth <= 1024; }

// Three rows of C at a time, 16 columns of them after the other. What a product takes of the stack is three
// rows of A in integers, and a little more than 192 bytes.
template <Int8Shape shape, class View, class Epilogue>
ATTUNE_INLINE void int8_rows(const float* a, int rows, const View& b, float* c, const Epilogue& epilogue) {
  constexpr bool kTransposed = View::transposed;
  constexpr int kMost = 3, kTerms = (shape.depth + 15) / 16 * 16, kDepth = View::Packed::kDepth;
  alignas(16) std::int8_t q[std::size_t{kMost * kTerms}];
  const auto some_rows = [&]<int kRows>(int row) ATTUNE_INLINE_LAMBDA {
    float scales[std::size_t{kRows}];
    std::int32_t sums[std::size_t{kRows}][16];
    for (int r = 0; r < kRows; ++r) {
      scales[r] = quantize_int8_row<kTransposed, shape.depth, shape.a_col>(a + (row + r) * shape.a_row,
                                                                           b.scale, q + r * kTerms);
    }
    const int end = b.first + shape.cols;
    for (int block = b.first / 16 * 16; block < end; block += 16) {
      const int first = (std::max)(block, b.first), last = (std::min)(block + 16, end);
      if constexpr (kTransposed) {
        int8_transposed_block<kRows, kTerms>(q, shape.depth, b.bytes + block, kDepth, sums);
      } else {
        int j = 0;
        for (; block + j < last - 1; j += 2) {
          int8_block<kRows, 2, kTerms>(q, b.bytes + (block + j) * kDepth,
                                       reinterpret_cast<std::int32_t(*)[16]>(sums[0] + j));
        }
        if (block + j < last) {
          int8_block<kRows, 1, kTerms>(q, b.bytes + (block + j) * kDepth,
                                       reinterpret_cast<std::int32_t(*)[16]>(sums[0] + j));
        }
      }
      const int col = first - b.first;
      for (int r = 0; r < kRows; ++r) {
        float* const to = c + (row + r) * shape.c_row + col;
        const std::int32_t* const from = sums[r] + (first - block);
        for_each_packet<float>(last - first, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
          P sum, scale = broadcast<P>(scales[r]);
          if constexpr (kIsScalar<P>) {
            sum = static_cast<float>(from[j]);
          } else {
            sum = P(vcvtq_f32_s32(vld1q_s32(from + j)));
          }
          if constexpr (!kTransposed) scale = multiply(scale, load<P>(b.scale + col + j));
          store(to + j, epilogue(multiply(sum, scale), static_cast<const float*>(to + j), col + j));
        });
      }
    }
  };
  int row = 0;
  for (; rows - row >= kMost; row += kMost) some_rows.template operator()<kMost>(row);
  for (; row < rows; ++row) some_rows.template operator()<1>(row);
}

}  // namespace detail
}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels

#endif
