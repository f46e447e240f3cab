// Sums of products in integers on x86-64, of one storage for SSE2, AVX2 and AVX-512 VNNI.
//
// Nothing saturates. VPDPBUSD takes bytes without a sign on one side: the weights, which stand as w + 128; of
// Σ q (w + 128) − 128 Σ q the second sum is one integer for each row, counted where the row is quantized.
// SSE2 and AVX2 multiply pairs of 16-bit integers (PMADDWD), of the same bytes widened with zeros.
//
// A transpose sums over columns. VPSHUFB transposes the 4 × 4 bytes of each 128 bits, after which a quarter
// of a register sums four columns for four k; without VNNI all 16 columns of four k are summed beside each
// other.
#pragma once

#include <attune/kernels/packed_int8.hpp>
#include <attune/kernels/portable/int8_rows.hpp>

#if defined(__x86_64__) && !ATTUNE_PORTABLE_KERNELS

#define ATTUNE_INT8_X86 1

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define ATTUNE_VNNI 1
#else
#define ATTUNE_VNNI 0
#endif

namespace attune::inline ATTUNE_ARITHMETIC::kernels {
namespace detail {

/// An integer of a row: a byte for VNNI, 16 bits for PMADDWD.
using Int8Term = std::conditional_t<ATTUNE_VNNI, std::int8_t, std::int16_t>;

/// A quantized row.
struct Int8Row {
  float scale;
  std::int32_t start;  // −128 Σ q
};

// Quantizes a row of A, times factors where it is folded, and fills it up with zeros.
template <bool kFolded, int kLength, int kStep>
ATTUNE_INLINE Int8Row quantize_int8_row(const float* x, const float* factors, Int8Term* to) {
  constexpr int kFilled = (kLength + 15) / 16 * 16;
  alignas(16) float row[kFilled];
  for (int i = 0; i < kLength; ++i) row[i] = kFolded ? multiply(x[i * kStep], factors[i]) : x[i * kStep];
  for (int i = kLength; i < kFilled; ++i) row[i] = 0;
  const __m128i no_sign = _mm_set1_epi32(0x7FFFFFFF);
  __m128i most = _mm_setzero_si128();
  for (int i = 0; i < kFilled; i += 4) {
    const __m128i bits = _mm_and_si128(_mm_load_si128(reinterpret_cast<const __m128i*>(row + i)), no_sign);
    const __m128i larger = _mm_cmpgt_epi32(bits, most);
    most = _mm_or_si128(_mm_and_si128(larger, bits), _mm_andnot_si128(larger, most));
  }
  std::uint32_t lanes[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), most);
  const RowScale scale =
      row_scale((std::max)((std::max)(lanes[0], lanes[1]), (std::max)(lanes[2], lanes[3])));
  const __m128 inverse = _mm_set1_ps(scale.inverse), round = _mm_set1_ps(0x1.8p23f);
  const __m128i zero = _mm_castps_si128(round);
  __m128i sums = _mm_setzero_si128();
  for (int i = 0; i < kFilled; i += 8) {
    const auto four = [&](int at) ATTUNE_INLINE_LAMBDA {  // the rounding of portable/int8_rows.hpp
      const __m128 rounded = _mm_add_ps(_mm_mul_ps(_mm_load_ps(row + at), inverse), round);
      return _mm_sub_epi32(_mm_castps_si128(rounded), zero);
    };
    const __m128i low = four(i), high = four(i + 4), q = _mm_packs_epi32(low, high);
    sums = _mm_add_epi32(sums, _mm_add_epi32(low, high));
    if constexpr (sizeof(Int8Term) == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), q);
    } else {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to + i), _mm_packs_epi16(q, q));
    }
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), sums);
  const std::uint32_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  return {scale.scale, static_cast<std::int32_t>(0u - 128u * sum)};
}

using Int8Sums = std::int32_t[16];

#if ATTUNE_VNNI

inline constexpr int kInt8RowsAtOnce = 6;

// Sums of 16 columns.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::uint8_t* weights, Int8Sums* sums) {
  __m512i sum[kRows];
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_si512();
  for (int i = 0; i < kTerms; i += 4) {
    const __m512i four_terms = _mm512_loadu_si512(weights + 16 * i);
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      std::int32_t four;
      std::memcpy(&four, q + r * kTerms + i, sizeof four);
      sum[r] = _mm512_dpbusd_epi32(sum[r], four_terms, _mm512_set1_epi32(four));
    }
  }
  ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) _mm512_storeu_si512(sums[r], sum[r]);
}

// Sums of 16 k over kTerms columns, whose groups stand `group` bytes apart.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const Int8Term* q, const std::uint8_t* weights, int group,
                                        Int8Sums* sums) {
  const __m512i transpose =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i each_four_times = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  for (int k = 0; k < 16; k += 4) {
    __m512i sum[kRows];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_si512();
    for (int i = 0; i < kTerms; i += 16) {
      const __m512i columns =
          _mm512_shuffle_epi8(_mm512_loadu_si512(weights + i / 16 * group + 16 * k), transpose);
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        const __m128i terms = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q + r * kTerms + i));
        sum[r] = _mm512_dpbusd_epi32(
            sum[r], columns, _mm512_permutexvar_epi32(each_four_times, _mm512_castsi128_si512(terms)));
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const __m256i half =
          _mm256_add_epi32(_mm512_castsi512_si256(sum[r]), _mm512_extracti64x4_epi64(sum[r], 1));
      const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(sums[r] + k), all);
    }
  }
}

#else

#if defined(__AVX2__)

inline constexpr int kInt8RowsAtOnce = 6;

// Sums of 16 columns, eight of them at a time: even and odd pairs of k of four columns in a register.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::uint8_t* weights, Int8Sums* sums) {
  for (int half = 0; half < 16; half += 8) {
    __m256i sum[kRows][2];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int i = 0; i < kTerms; i += 4) {
      const auto* const from = reinterpret_cast<const __m128i*>(weights + 16 * i + 4 * half);
      const __m256i first = _mm256_cvtepu8_epi16(_mm_loadu_si128(from)),
                    second = _mm256_cvtepu8_epi16(_mm_loadu_si128(from + 1));
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        long long four;
        std::memcpy(&four, q + r * kTerms + i, sizeof four);
        const __m256i terms = _mm256_set1_epi64x(four);
        sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(first, terms));
        sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(second, terms));
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const __m256i both = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[r][0], sum[r][1]), 0xD8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[r] + half), both);
    }
  }
}

#else

inline constexpr int kInt8RowsAtOnce = 2;

// Sums of 16 columns, eight of them at a time: even and odd pairs of k of two columns in a register.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::uint8_t* weights, Int8Sums* sums) {
  for (int half = 0; half < 16; half += 8) {
    __m128i sum[kRows][4];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int b = 0; b < 4; ++b) sum[r][b] = _mm_setzero_si128();
    }
    for (int i = 0; i < kTerms; i += 4) {
      __m128i terms[kRows];
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + r * kTerms + i));
        terms[r] = _mm_unpacklo_epi64(four, four);
      }
      ATTUNE_UNROLL for (int b = 0; b < 4; b += 2) {
        const __m128i bytes =
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights + 16 * i + 4 * half + 8 * b));
        const __m128i low = _mm_unpacklo_epi8(bytes, _mm_setzero_si128()),
                      high = _mm_unpackhi_epi8(bytes, _mm_setzero_si128());
        ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
          sum[r][b] = _mm_add_epi32(sum[r][b], _mm_madd_epi16(low, terms[r]));
          sum[r][b + 1] = _mm_add_epi32(sum[r][b + 1], _mm_madd_epi16(high, terms[r]));
        }
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int b = 0; b < 4; b += 2) {
        const __m128 low = _mm_castsi128_ps(sum[r][b]), high = _mm_castsi128_ps(sum[r][b + 1]);
        const __m128i both = _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)),
                                           _mm_castps_si128(_mm_shuffle_ps(low, high, 0xDD)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(sums[r] + half + 2 * b), both);
      }
    }
  }
}

#endif

// Sums of 16 k over kTerms columns, whose groups stand `group` bytes apart: four k of 16 columns at a time.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const Int8Term* q, const std::uint8_t* weights, int group,
                                        Int8Sums* sums) {
  for (int r = 0; r < kRows; ++r) {
    for (int k = 0; k < 16; k += 4) {
      std::int32_t of_columns[64] = {};
      for (int i = 0; i < kTerms; i += 16) {
        const std::uint8_t* const columns = weights + i / 16 * group + 16 * k;
        std::int16_t terms[64];
        for (int j = 0; j < 64; ++j) terms[j] = q[r * kTerms + i + j / 4];
        for (int j = 0; j < 64; ++j) of_columns[j] += terms[j] * columns[j];
      }
      for (int j = 0; j < 4; ++j) {
        std::int32_t sum = 0;
        for (int column = 0; column < 16; ++column) sum += of_columns[4 * column + j];
        sums[r][k + j] = sum;
      }
    }
  }
}

#endif

/// Whether the rows have room on the stack.
constexpr bool fits_int8_rows(int depth) { return depth <= 4096; }

// Some rows of C at a time, 16 columns of them after the other; what is left goes row by row.
template <Int8Shape shape, class View, class Epilogue>
ATTUNE_INLINE void int8_rows(const float* a, int rows, const View& b, float* c, const Epilogue& epilogue) {
  constexpr bool kTransposed = View::transposed;
  constexpr int kTerms = (shape.depth + 15) / 16 * 16, kDepth = View::Packed::kDepth;
  alignas(64) Int8Term q[kInt8RowsAtOnce * kTerms];
  const auto* const weights = reinterpret_cast<const std::uint8_t*>(b.bytes);
  const auto some_rows = [&]<int kRows>(int row) ATTUNE_INLINE_LAMBDA {
    Int8Row quantized[kRows];
    alignas(64) Int8Sums sums[kRows];
    for (int r = 0; r < kRows; ++r) {
      quantized[r] = quantize_int8_row<kTransposed, shape.depth, shape.a_col>(a + (row + r) * shape.a_row,
                                                                              b.scale, q + r * kTerms);
    }
    const int end = b.first + shape.cols;
    for (int block = b.first / 16 * 16; block < end; block += 16) {
      const int first = (std::max)(block, b.first), last = (std::min)(block + 16, end);
      if constexpr (kTransposed) {
        int8_transposed_sums<kRows, kTerms>(q, weights + 16 * block, 16 * kDepth, sums);
      } else {
        int8_sums<kRows, kTerms>(q, weights + block * kDepth, sums);
      }
      for (int r = 0; r < kRows; ++r) {
        float* const to = c + (row + r) * shape.c_row;
        float finished[16];
        for (int j = 0; j < 16; ++j) finished[j] = static_cast<float>(sums[r][j] + quantized[r].start);
        const int col = first - b.first;
        for (int j = 0; j < last - first; ++j) {
          finished[first - block + j] =
              multiply(finished[first - block + j], b.scaled(quantized[r].scale, col + j));
        }
        for_each_packet<float>(last - first, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
          store(to + col + j, epilogue(load<P>(finished + (first - block) + j),
                                       static_cast<const float*>(to + col + j), col + j));
        });
      }
    }
  };
  int row = 0;
  for (; rows - row >= kInt8RowsAtOnce; row += kInt8RowsAtOnce)
    some_rows.template operator()<kInt8RowsAtOnce>(row);
  for (; row < rows; ++row) some_rows.template operator()<1>(row);
}

}  // namespace detail
}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels

#else
#define ATTUNE_INT8_X86 0
#endif
