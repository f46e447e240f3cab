// Products of int8 matrices on 64-bit Arm, with one storage for every processor.
//
// W and quantized rows of A lie in groups of eight, with eight k of each side by side (Int8Order::kEights).
// 16 bytes are eight k of two columns:
//
//   SMMLA (i8mm)     multiplies two rows by two columns, 32 products
//   SDOT (dotprod)   four sums of four products: a row twice, two columns
//   SMULL, SMLAL     eight sums of two products fit 16 bits, as integers are −127 … 127; SADALP adds them up
//
// Sums are exact, so all three have the same bits. On Linux the program asks the processor when it starts;
// elsewhere the compiler's options decide. For three rows or more ops/int8_gemm.hpp transposes a transpose
// first; for fewer, eight k of a column are multiplied by one integer of a row.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

#if defined(__aarch64__) && defined(__ARM_NEON) && !ATTUNE_PORTABLE_KERNELS

#define ATTUNE_INT8_NEON 1

#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstdint>
#include <cstring>

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

/// Units of a processor for integer products.
enum class Int8Unit : unsigned char { kNeon, kDotprod, kI8mm };

/// The best one that the compiler's options, or Linux, say is there.
[[nodiscard]] inline Int8Unit find_int8_unit() {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return Int8Unit::kI8mm;
#elif defined(__linux__)
  constexpr unsigned long kHasDotprod = 1ul << 20, kHasI8mm = 1ul << 13;  // of HWCAP and HWCAP2
  if ((getauxval(AT_HWCAP2) & kHasI8mm) != 0) return Int8Unit::kI8mm;
  if ((getauxval(AT_HWCAP) & kHasDotprod) != 0) return Int8Unit::kDotprod;
#endif
#if defined(__ARM_FEATURE_DOTPROD)
  return Int8Unit::kDotprod;
#else
  return Int8Unit::kNeon;
#endif
}

/// kNeon until it is initialized.
inline const Int8Unit kInt8Unit = find_int8_unit();

using Int8Term = std::int8_t;
using Int8Sums = std::int32_t[16];

/// A quantized row.
struct Int8Row {
  float scale;
};

/// The longest row with a quantized copy on the stack, and rows of a block, of the transpose one.
inline constexpr int kInt8MostTerms = 4096, kInt8RowsAtOnce = 8, kInt8TransposedRowsAtOnce = 4;

/// Sums of a row, at the first column of a packet.
template <class P>
ATTUNE_INLINE P int8_sums_as_floats(const std::int32_t* sums, const Int8Row&) {
  constexpr int kWidth = kLanes<P>;
  if constexpr (kWidth == 1) {
    return static_cast<float>(*sums);
  } else {
    return P(__builtin_convertvector((load_vector<std::int32_t, kWidth>(sums)), Vector<float, kWidth>));
  }
}

// Four scalars, times factors if kFolded.
template <bool kFolded>
ATTUNE_INLINE float32x4_t four_scalars(const float* x, [[maybe_unused]] const float* factors) {
  if constexpr (kFolded) {
    return vmulq_f32(vld1q_f32(x), vld1q_f32(factors));
  } else {
    return vld1q_f32(x);
  }
}

/// Calls body(i, x, factors) for 16 scalars at a time; zeros fill the last ones.
template <bool kFolded, class Body>
ATTUNE_INLINE void for_each_16(const float* x, const float* factors, int count, const Body& body) {
  const int whole = count / 16 * 16;
  for (int i = 0; i < whole; i += 16) body(i, x + i, factors + i);
  if (whole < count) {
    float filled[kFolded ? 2 : 1][16] = {};
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(count - whole);
    std::memcpy(filled[0], x + whole, bytes);
    if constexpr (kFolded) std::memcpy(filled[1], factors + whole, bytes);
    body(whole, filled[0], filled[kFolded ? 1 : 0]);
  }
}

/// The bits of the largest magnitude. A NaN's are larger than all others.
template <bool kFolded>
ATTUNE_INLINE std::uint32_t largest_magnitude_bits(const float* x, const float* factors, int count) {
  uint32x4_t most[2] = {vdupq_n_u32(0), vdupq_n_u32(0)};
  for_each_16<kFolded>(x, factors, count,
                       [&](int, const float* from, const float* times) ATTUNE_INLINE_LAMBDA {
                         ATTUNE_UNROLL for (int i = 0; i < 4; ++i) {
                           const float32x4_t four = four_scalars<kFolded>(from + 4 * i, times + 4 * i);
                           most[i % 2] = vmaxq_u32(most[i % 2], vreinterpretq_u32_f32(vabsq_f32(four)));
                         }
                       });
  return vmaxvq_u32(vmaxq_u32(most[0], most[1]));
}

// The nearest integers of four scalars times a factor, in 32 bits.
ATTUNE_INLINE int16x8_t nearest(float32x4_t scalars, float factor) {
  return vreinterpretq_s16_s32(vcvtnq_s32_f32(vmulq_n_f32(scalars, factor)));
}

/// Rounds x · inverse to integers, eight at a time, 64 bytes apart; zeros follow up to `filled`. Where the
/// inverse is 0, all of them are 0.
template <bool kFolded>
ATTUNE_INLINE void round_row(const float* x, const float* factors, int count, float inverse, std::int8_t* to,
                             int filled) {
  if (inverse == 0) count = 0;
  for_each_16<kFolded>(
      x, factors, count, [&](int i, const float* from, const float* times) ATTUNE_INLINE_LAMBDA {
        int16x8_t integers[4];
        ATTUNE_UNROLL for (int j = 0; j < 4; ++j) {
          integers[j] = nearest(four_scalars<kFolded>(from + 4 * j, times + 4 * j), inverse);
        }
        const int8x16_t bytes = vuzp1q_s8(vreinterpretq_s8_s16(vuzp1q_s16(integers[0], integers[1])),
                                          vreinterpretq_s8_s16(vuzp1q_s16(integers[2], integers[3])));
        vst1_s8(to + 8 * i, vget_low_s8(bytes));
        vst1_s8(to + 8 * i + 64, vget_high_s8(bytes));
      });
  for (int i = (count + 15) / 16 * 16; i < filled; i += 8) vst1_s8(to + 8 * i, vdup_n_s8(0));
}

/// Quantizes the first numbers of a row of A, multiplied by factors if kFolded, with zeros behind them.
template <bool kFolded, int kLength, int kStep, class Count>
ATTUNE_INLINE Int8Row quantize_int8_row(const float* x, const float* factors, Count numbers,
                                        std::int8_t* to) {
  const int count = numbers;
  float dense[std::size_t{kStep == 1 ? 1 : kLength}];
  if constexpr (kStep != 1) {
    for (int i = 0; i < count; ++i) dense[i] = x[i * kStep];
    x = dense;
  }
  const RowScale scale = row_scale(largest_magnitude_bits<kFolded>(x, factors, count));
  round_row<kFolded>(x, factors, count, scale.inverse, to, (kLength + 15) / 16 * 16);
  return {scale.scale};
}

// Eight bytes of eight rows to eight columns.
ATTUNE_INLINE void store_transposed(const int8x16_t* rows, std::int8_t* to) {
  int8x16_t even[4], odd[4];
  ATTUNE_UNROLL for (int i = 0; i < 4; ++i) even[i] = vzip1q_s8(rows[i], rows[i + 4]);
  ATTUNE_UNROLL for (int i = 0; i < 2; ++i) {
    odd[2 * i] = vzip1q_s8(even[i], even[i + 2]);
    odd[2 * i + 1] = vzip2q_s8(even[i], even[i + 2]);
  }
  ATTUNE_UNROLL for (int i = 0; i < 2; ++i) {
    vst1q_s8(to + 32 * i, vzip1q_s8(odd[i], odd[2 + i]));
    vst1q_s8(to + 32 * i + 16, vzip2q_s8(odd[i], odd[2 + i]));
  }
}

/// Rounds `count` vectors of `length` numbers, `stride` apart, into the first rows of a packed matrix. Bytes
/// beside them are undefined. NaN and infinity become any integers.
template <class Packed>
[[gnu::noinline]] void pack_rows(const float* x, int stride, int count, int length, const float* inverses,
                                 std::int8_t* bytes) {
  for (int first = 0; first < count; first += 8) {
    const int rows = smaller(count - first, 8);
    for (int col = 0; col < length; col += 8) {
      int8x16_t integers[8] = {};
      for (int r = 0; r < rows; ++r) {
        const float* from = x + (first + r) * stride + col;
        float filled[8] = {};
        if (length - col < 8) {
          std::memcpy(filled, from, sizeof(float) * static_cast<std::size_t>(length - col));
          from = filled;
        }
        const float inverse = inverses[first + r];
        const int16x8_t pairs =
            vuzp1q_s16(nearest(vld1q_f32(from), inverse), nearest(vld1q_f32(from + 4), inverse));
        integers[r] = vuzp1q_s8(vreinterpretq_s8_s16(pairs), vreinterpretq_s8_s16(pairs));
      }
      store_transposed(integers, bytes + Packed::place(first, col));
    }
  }
}

/// Packs the transpose of `length` rows of `columns` packed columns. Columns take `from_step` bytes, the
/// results `to_step`; those that fill a group of eight are undefined.
[[gnu::noinline]] inline void transpose_integers(const std::int8_t* from, int from_step, int columns,
                                                 int length, std::int8_t* to, int to_step) {
  for (int k = 0; k < length; k += 8) {
    for (int col = 0; col < columns; col += 8) {
      const std::int8_t* const block = from + col * from_step + 8 * k;
      int8x16_t eight[8];
      ATTUNE_UNROLL for (int i = 0; i < 8; i += 2) {
        eight[i] = vld1q_s8(block + 8 * i);
        eight[i + 1] = vextq_s8(eight[i], eight[i], 8);
      }
      store_transposed(eight, to + k * to_step + 8 * col);
    }
  }
}

// Sums of eight columns, for kRows rows of a group of eight, by SMULL and SMLAL: 16 k at a time.
template <int kRows>
ATTUNE_INLINE void int8_sums_neon(const std::int8_t* q, const std::int8_t* weights, int terms,
                                  Int8Sums* sums) {
  int32x4_t sum[std::size_t{kRows}][8];
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
    ATTUNE_UNROLL for (int col = 0; col < 8; ++col) sum[r][col] = vdupq_n_s32(0);
  }
  for (int i = 0; i < terms; i += 16, q += 128, weights += 128) {
    int8x8_t row[std::size_t{kRows}][2];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      row[r][0] = vld1_s8(q + 8 * r);
      row[r][1] = vld1_s8(q + 8 * r + 64);
    }
    ATTUNE_UNROLL for (int col = 0; col < 8; ++col) {
      const int8x8_t first = vld1_s8(weights + 8 * col), second = vld1_s8(weights + 8 * col + 64);
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        sum[r][col] = vpadalq_s16(sum[r][col], vmlal_s8(vmull_s8(first, row[r][0]), second, row[r][1]));
      }
    }
  }
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
    ATTUNE_UNROLL for (int col = 0; col < 8; col += 4) {
      vst1q_s32(sums[r] + col, vpaddq_s32(vpaddq_s32(sum[r][col], sum[r][col + 1]),
                                          vpaddq_s32(sum[r][col + 2], sum[r][col + 3])));
    }
  }
}

template <int kRows>
[[gnu::noinline]] inline void int8_rows_neon(const std::int8_t* q, const std::int8_t* weights, int terms,
                                             Int8Sums* sums) {
  constexpr int kAtOnce = smaller(kRows, 2);
  for (int r = 0; r < kRows; r += kAtOnce) int8_sums_neon<kAtOnce>(q + 8 * r, weights, terms, sums + r);
}

// In numbers, since neither the compiler nor the assembler may know the instructions:
// `sdot v<d>.4s,v<n>.16b,v<m>.16b` and `smmla` of the same.
#define ATTUNE_SDOT(d, n, m) ".inst 0x4e809400+(" #m "<<16)+(" #n "<<5)+" #d "\n"
#define ATTUNE_SMMLA(d, n, m) ".inst 0x4e80a400+(" #m "<<16)+(" #n "<<5)+" #d "\n"
// Four sums of a row, or of two rows, and columns in v4 to v7.
#define ATTUNE_FOUR(instruction, n, d0, d1, d2, d3) \
  instruction(d0, n, 4) instruction(d1, n, 5) instruction(d2, n, 6) instruction(d3, n, 7)
#define ATTUNE_SIXTEEN(instruction)           \
  ATTUNE_FOUR(instruction, 0, 16, 17, 18, 19) \
  ATTUNE_FOUR(instruction, 1, 20, 21, 22, 23) \
  ATTUNE_FOUR(instruction, 2, 24, 25, 26, 27) ATTUNE_FOUR(instruction, 3, 28, 29, 30, 31)
#define ATTUNE_ZERO(a, b, c, d) \
  "movi v" #a ".4s,#0\n movi v" #b ".4s,#0\n movi v" #c ".4s,#0\n movi v" #d ".4s,#0\n"
#define ATTUNE_ZERO_SUMS      \
  ATTUNE_ZERO(16, 17, 18, 19) \
  ATTUNE_ZERO(20, 21, 22, 23) ATTUNE_ZERO(24, 25, 26, 27) ATTUNE_ZERO(28, 29, 30, 31)
#define ATTUNE_COLUMNS "ldp q4,q5,[%[w]],#64\n ldp q6,q7,[%[w],#-32]\n"
#define ATTUNE_CLOBBERS                                                                                     \
  "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", \
      "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
// Sums of eight columns to memory, from pairs: of a row by SDOT, of two rows by SMMLA.
#define ATTUNE_ADD_PAIRS(a, b, c, d, at) \
  "addp v0.4s,v" #a ".4s,v" #b ".4s\n addp v1.4s,v" #c ".4s,v" #d ".4s\n stp q0,q1,[%[sums],#" #at "]\n"
#define ATTUNE_ZIP_PAIRS(a, b, c, d, at, next)                                                     \
  "zip1 v0.2d,v" #a ".2d,v" #b ".2d\n zip1 v1.2d,v" #c ".2d,v" #d ".2d\n stp q0,q1,[%[sums],#" #at \
  "]\n"                                                                                            \
  "zip2 v2.2d,v" #a ".2d,v" #b ".2d\n zip2 v3.2d,v" #c ".2d,v" #d ".2d\n stp q2,q3,[%[sums],#" #next "]\n"

// Four rows of a group of eight by SDOT, eight k at a time, and one row.
inline void int8_four_rows_dotprod(const std::int8_t* q, const std::int8_t* weights, int terms,
                                   Int8Sums* sums) {
  int turns = terms / 8;
  asm volatile(ATTUNE_ZERO_SUMS
               "1: ld1r {v0.2d},[%[q]],#8\n ld1r {v1.2d},[%[q]],#8\n ld1r {v2.2d},[%[q]],#8\n"
               "ld1r {v3.2d},[%[q]],%[next]\n" ATTUNE_COLUMNS
               "subs %w[turns],%w[turns],#1\n" ATTUNE_SIXTEEN(ATTUNE_SDOT) "b.ne 1b\n" ATTUNE_ADD_PAIRS(
                   16, 17, 18, 19, 0) ATTUNE_ADD_PAIRS(20, 21, 22, 23, 64)
                   ATTUNE_ADD_PAIRS(24, 25, 26, 27, 128) ATTUNE_ADD_PAIRS(28, 29, 30, 31, 192)
               : [q] "+r"(q), [w] "+r"(weights), [turns] "+r"(turns)
               : [sums] "r"(sums), [next] "r"(40l)
               : ATTUNE_CLOBBERS);
}
inline void int8_one_row_dotprod(const std::int8_t* q, const std::int8_t* weights, int terms,
                                 Int8Sums* sums) {
  int turns = terms / 8;
  asm volatile(ATTUNE_ZERO(16, 17, 18, 19) "1: ld1r {v0.2d},[%[q]],%[next]\n" ATTUNE_COLUMNS
                                           "subs %w[turns],%w[turns],#1\n" ATTUNE_FOUR(
                                               ATTUNE_SDOT, 0, 16, 17, 18,
                                               19) "b.ne 1b\n" ATTUNE_ADD_PAIRS(16, 17, 18, 19, 0)
               : [q] "+r"(q), [w] "+r"(weights), [turns] "+r"(turns)
               : [sums] "r"(sums), [next] "r"(64l)
               : ATTUNE_CLOBBERS);
}
template <int kRows>
[[gnu::noinline]] inline void int8_rows_dotprod(const std::int8_t* q, const std::int8_t* weights, int terms,
                                                Int8Sums* sums) {
  if constexpr (kRows == 1) {
    int8_one_row_dotprod(q, weights, terms, sums);
  } else {
    static_assert(kRows == 8);
    int8_four_rows_dotprod(q, weights, terms, sums);
    int8_four_rows_dotprod(q + 32, weights, terms, sums + 4);
  }
}

// Eight rows by SMMLA, 16 k at a time.
[[gnu::noinline]] inline void int8_rows_i8mm(const std::int8_t* q, const std::int8_t* weights, int terms,
                                             Int8Sums* sums) {
#define ATTUNE_EIGHT_K \
  "ldp q0,q1,[%[q]],#64\n ldp q2,q3,[%[q],#-32]\n" ATTUNE_COLUMNS ATTUNE_SIXTEEN(ATTUNE_SMMLA)
  int turns = terms / 16;
  asm volatile(ATTUNE_ZERO_SUMS
               "1: subs %w[turns],%w[turns],#1\n" ATTUNE_EIGHT_K ATTUNE_EIGHT_K
               "b.ne 1b\n" ATTUNE_ZIP_PAIRS(16, 17, 18, 19, 0, 64) ATTUNE_ZIP_PAIRS(20, 21, 22, 23, 128, 192)
                   ATTUNE_ZIP_PAIRS(24, 25, 26, 27, 256, 320) ATTUNE_ZIP_PAIRS(28, 29, 30, 31, 384, 448)
               : [q] "+r"(q), [w] "+r"(weights), [turns] "+r"(turns)
               : [sums] "r"(sums)
               : ATTUNE_CLOBBERS);
#undef ATTUNE_EIGHT_K
}

#undef ATTUNE_SDOT
#undef ATTUNE_SMMLA
#undef ATTUNE_FOUR
#undef ATTUNE_SIXTEEN
#undef ATTUNE_ZERO
#undef ATTUNE_ZERO_SUMS
#undef ATTUNE_COLUMNS
#undef ATTUNE_CLOBBERS
#undef ATTUNE_ADD_PAIRS
#undef ATTUNE_ZIP_PAIRS

/// Sums for `count` columns, at most 16.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const std::int8_t* q, const std::int8_t* weights, int count, Int8Sums* sums) {
  for (int first = 0; first < count; first += 8) {
    const std::int8_t* const columns = weights + first * kTerms;
    auto* const to = reinterpret_cast<Int8Sums*>(sums[0] + first);
    if (kRows == 8 && kInt8Unit == Int8Unit::kI8mm) {
      int8_rows_i8mm(q, columns, kTerms, to);
    } else if (kInt8Unit != Int8Unit::kNeon) {
      int8_rows_dotprod<kRows>(q, columns, kTerms, to);
    } else {
      int8_rows_neon<kRows>(q, columns, kTerms, to);
    }
  }
}

/// Sums for 16 k, over columns of W of `column` bytes each, in pairs.
template <int kRows, int>
ATTUNE_INLINE void int8_transposed_sums(const std::int8_t* q, const std::int8_t* weights, int column,
                                        int columns, Int8Sums* sums) {
  int32x4_t sum[std::size_t{kRows}][4];
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
    ATTUNE_UNROLL for (int j = 0; j < 4; ++j) sum[r][j] = vdupq_n_s32(0);
  }
  for (int i = 0; i < columns; i += 2) {
    const std::int8_t* const from = weights + i / 8 * 8 * column + i % 8 * 8;
    const std::int8_t* const terms = q + i / 8 * 64 + i % 8;
    const int8x16_t pair[2] = {vld1q_s8(from), vld1q_s8(from + 64)};
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const int8x8_t first = vdup_n_s8(terms[8 * r]);
      const int8x16_t second = vdupq_n_s8(terms[8 * r + 1]);
      ATTUNE_UNROLL for (int j = 0; j < 2; ++j) {
        const int16x8_t products = vmlal_high_s8(vmull_s8(vget_low_s8(pair[j]), first), pair[j], second);
        sum[r][2 * j] = vaddw_s16(sum[r][2 * j], vget_low_s16(products));
        sum[r][2 * j + 1] = vaddw_high_s16(sum[r][2 * j + 1], products);
      }
    }
  }
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
    ATTUNE_UNROLL for (int j = 0; j < 4; ++j) vst1q_s32(sums[r] + 4 * j, sum[r][j]);
  }
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#else
#define ATTUNE_INT8_NEON 0
#endif
