// Integer sums of products on x86-64, with one storage for SSE2, AVX2 and AVX-512 VNNI.
//
// Nothing saturates. VPDPBUSD takes unsigned bytes on one side: the weights, stored as w + 128. The sum is Σ
// q (w + 128) − 128 Σ q; the second term is one integer per row, computed while the row is quantized. SSE2
// and AVX2 multiply pairs of 16-bit integers (PMADDWD), the same bytes widened with zeros.
//
// A transposed product sums over columns. VPSHUFB transposes the 4 × 4 bytes of each 128 bits; a quarter of a
// register then sums four columns for four k. PMADDWD takes unpacked pairs of columns.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

#if defined(__x86_64__) && !ATTUNE_PORTABLE_KERNELS

#define ATTUNE_INT8_X86 1

// Including all intrinsics would take longer to compile than the rest of the library.
#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define ATTUNE_VNNI 1
#else
#define ATTUNE_VNNI 0
#endif

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

/// An element of a quantized row: a byte for VNNI, 16 bits for PMADDWD.
using Int8Term = std::conditional_t<ATTUNE_VNNI, std::int8_t, std::int16_t>;

/// A quantized row.
struct Int8Row {
  float scale;
  std::int32_t start;  // −128 Σ q
};

// Lanes of 32 bits, and their vectors.
inline constexpr int kInt8Lanes =
#if defined(__AVX512F__)
    16;
#elif defined(__AVX2__)
    8;
#else
    4;
#endif
using Int8Floats = Vector<float, kInt8Lanes>;
using Int8Bits = Vector<std::int32_t, kInt8Lanes>;
using Int8Counts = Vector<std::uint32_t, kInt8Lanes>;

// The largest of the lanes, and their sum.
ATTUNE_INLINE std::int32_t largest_lane(const Int8Bits& lanes) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_epi32(reinterpret_cast<__m512i>(lanes));
#else
  std::int32_t largest = lanes[0];
  for (int lane = 1; lane < kInt8Lanes; ++lane) largest = larger(largest, lanes[lane]);
  return largest;
#endif
}
ATTUNE_INLINE std::uint32_t sum_of_lanes(const Int8Counts& lanes) {
#if defined(__AVX512F__)
  return static_cast<std::uint32_t>(_mm512_reduce_add_epi32(reinterpret_cast<__m512i>(lanes)));
#else
  std::uint32_t sum = 0;
  for (int lane = 0; lane < kInt8Lanes; ++lane) sum += lanes[lane];
  return sum;
#endif
}

// Calls body(i, lane_values) for the numbers of a row, multiplied by factors if kFolded, a vector at a time.
// Zeros fill the last one.
template <bool kFolded, class Body>
ATTUNE_INLINE void for_each_vector(const float* x, const float* factors, int count, const Body& body) {
  const auto some = [&](int i, int lanes) ATTUNE_INLINE_LAMBDA {
    Int8Floats lane_values{};
    std::memcpy(&lane_values, x + i, sizeof(float) * static_cast<std::size_t>(lanes));
    if constexpr (kFolded) {
      Int8Floats folded{};
      std::memcpy(&folded, factors + i, sizeof(float) * static_cast<std::size_t>(lanes));
      lane_values *= folded;
    }
    body(i, lane_values);
  };
  const int rest = count % kInt8Lanes, whole = count - rest;
  for (int i = 0; i < whole; i += kInt8Lanes) some(i, kInt8Lanes);
  if (rest > 0) some(whole, rest);
}

/// The bits of the largest magnitude. A NaN's are larger than all others.
template <bool kFolded>
ATTUNE_INLINE std::uint32_t largest_magnitude_bits(const float* x, const float* factors, int count) {
  Int8Bits most{};
  for_each_vector<kFolded>(x, factors, count, [&](int, const Int8Floats& lane_values) ATTUNE_INLINE_LAMBDA {
    const Int8Bits bits = reinterpret_cast<Int8Bits>(lane_values) & 0x7FFFFFFF;
    most = bits > most ? bits : most;
  });
  return static_cast<std::uint32_t>(largest_lane(most));
}

/// Rounds x · inverse to integers, and fills the last vector with zeros. Returns the sum of the integers.
/// Where the inverse is 0, all of them are 0: the numbers may be NaN, whose bits overflow in sums.
template <bool kFolded>
ATTUNE_INLINE std::uint32_t round_row(const float* x, const float* factors, int count, float inverse,
                                      Int8Term* to) {
  using Terms = Vector<Int8Term, kInt8Lanes>;
  if (inverse == 0) {
    const int written = (count + kInt8Lanes - 1) / kInt8Lanes * kInt8Lanes;
    std::memset(to, 0, sizeof(Int8Term) * static_cast<std::size_t>(written));
    return 0;
  }
  Int8Counts sums{};
  for_each_vector<kFolded>(x, factors, count, [&](int i, const Int8Floats& lane_values) ATTUNE_INLINE_LAMBDA {
    const Int8Floats rounded = lane_values * inverse + 0x1.8p23f;
    const Int8Bits integers = reinterpret_cast<Int8Bits>(rounded) - std::bit_cast<std::int32_t>(0x1.8p23f);
    const auto terms = __builtin_convertvector(integers, Terms);
    std::memcpy(to + i, &terms, sizeof terms);
    sums += reinterpret_cast<Int8Counts>(integers);
  });
  return sum_of_lanes(sums);
}

// Quantizes the first numbers of a row of A, multiplied by factors if kFolded, and fills it with zeros to at
// least kLength.
template <bool kFolded, int kLength, int kStep, class Count>
ATTUNE_INLINE Int8Row quantize_int8_row(const float* x, const float* factors, Count numbers, Int8Term* to) {
  const int count = numbers;
  constexpr int kFilled = (kLength + 15) / 16 * 16;
  float dense[std::size_t{kStep == 1 ? 1 : kLength}];
  if constexpr (kStep != 1) {
    for (int i = 0; i < count; ++i) dense[i] = x[i * kStep];
    x = dense;
  }
  const RowScale scale = row_scale(largest_magnitude_bits<kFolded>(x, factors, count));
  const std::uint32_t sum = round_row<kFolded>(x, factors, count, scale.inverse, to);
  const int written = (count + kInt8Lanes - 1) / kInt8Lanes * kInt8Lanes;
  if (written < kFilled)
    std::memset(to + written, 0, sizeof(Int8Term) * static_cast<std::size_t>(kFilled - written));
  return {scale.scale, static_cast<std::int32_t>(0u - 128u * sum)};
}

/// The same for kRows rows side by side: columns of a matrix whose rows are `step` apart. Rows of integers
/// are kStep apart, and zeros fill them.
template <bool kFolded, int kRows, int kStep, class Count>
ATTUNE_INLINE void quantize_side_by_side(const float* x, int step, const float* factors, Count numbers,
                                         Int8Term* to, Int8Row* rows) {
  using Floats = Vector<float, kRows>;
  using Bits = Vector<std::int32_t, kRows>;
  using Counts = Vector<std::uint32_t, kRows>;
  const int count = numbers;
  const auto lane_values = [&](int i) ATTUNE_INLINE_LAMBDA {
    Floats values;
    std::memcpy(&values, x + i * step, sizeof values);
    return kFolded ? values * factors[i] : values;
  };
  Bits most{};
  for (int i = 0; i < count; ++i) {
    const Bits bits = reinterpret_cast<Bits>(lane_values(i)) & 0x7FFFFFFF;
    most = bits > most ? bits : most;
  }
  Floats inverse;
  for (int r = 0; r < kRows; ++r) {
    const RowScale row = row_scale(static_cast<std::uint32_t>(most[r]));
    rows[r].scale = row.scale;
    inverse[r] = row.inverse;
  }
  constexpr int kTerms = 4 / sizeof(Int8Term), kBits = 32 / kTerms;  // in a lane
  std::memset(to, 0, sizeof(Int8Term) * kRows * kStep);
  Counts sums{};
  for (int i = 0; i < count; i += kTerms) {
    Counts terms{};
    for (int t = 0; t < kTerms && i + t < count; ++t) {
      const Floats rounded = lane_values(i + t) * inverse + 0x1.8p23f;
      const Counts integers = reinterpret_cast<Counts>(rounded) - std::bit_cast<std::uint32_t>(0x1.8p23f);
      sums += integers;
      terms |= (integers & ((1u << kBits) - 1)) << kBits * t;
    }
    for (int r = 0; r < kRows; ++r) {
      const std::uint32_t together = terms[r];
      std::memcpy(to + r * kStep + i, &together, sizeof together);
    }
  }
  for (int r = 0; r < kRows; ++r) rows[r].start = static_cast<std::int32_t>(0u - 128u * sums[r]);
}

/// Rounds `count` vectors of `length` numbers, `stride` apart, into the first rows of a packed matrix. Bytes
/// beside them are undefined. NaN and infinity become any integers.
template <class Packed>
[[gnu::noinline]] void pack_rows(const float* x, int stride, int count, int length, const float* inverses,
                                 std::int8_t* bytes) {
  const auto columns = [&](int col, int lanes) ATTUNE_INLINE_LAMBDA {
    for (int first = 0; first < count; first += 4) {
      Int8Counts four{};
      for (int k = first; k < first + 4 && k < count; ++k) {
        Int8Floats values{};
        std::memcpy(&values, x + k * stride + col, sizeof(float) * static_cast<std::size_t>(lanes));
        const Int8Floats rounded = values * inverses[k] + 0x1.8p23f;
        four |= (reinterpret_cast<Int8Counts>(rounded) & 0xFF) << 8 * (k - first);
      }
      four ^= 0x80808080u;  // + 128
      std::memcpy(bytes + Packed::place(first, col), &four, sizeof four);
    }
  };
  const int whole = length / kInt8Lanes * kInt8Lanes;
  for (int col = 0; col < whole; col += kInt8Lanes) columns(col, kInt8Lanes);
  if (whole < length) columns(whole, length - whole);
}

using Int8Sums = std::int32_t[16];

/// The longest row that fits the stack as integers.
inline constexpr int kInt8MostTerms = 4096;

/// Sums of a row as floats, starting at a packet's first column.
template <class P>
ATTUNE_INLINE P int8_sums_as_floats(const std::int32_t* sums, const Int8Row& row) {
  constexpr int kWidth = kLanes<P>;
  if constexpr (kWidth == 1) {
    return static_cast<float>(*sums + row.start);
  } else {
    const auto integers = load_vector<std::int32_t, kWidth>(sums) + row.start;
    return P(__builtin_convertvector(integers, Vector<float, kWidth>));
  }
}

#if ATTUNE_VNNI

inline constexpr int kInt8RowsAtOnce = 6, kInt8TransposedRowsAtOnce = 6;

// Sums of 16 columns; ignores their number.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::int8_t* weights, int, Int8Sums* sums) {
  __m512i sum[std::size_t{kRows}];
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

// Sums of 16 k over kTerms columns of W; each column takes `column` bytes.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const Int8Term* q, const std::int8_t* weights, int column, int,
                                        Int8Sums* sums) {
  const __m512i transpose =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i each_four_times = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  for (int k = 0; k < 16; k += 4) {
    __m512i sum[std::size_t{kRows}];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = _mm512_setzero_si512();
    for (int i = 0; i < kTerms; i += 16) {
      const __m512i columns =
          _mm512_shuffle_epi8(_mm512_loadu_si512(weights + i * column + 16 * k), transpose);
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

// sum += a · b, in pairs. Inline assembly, because GCC computes all products of an iteration before it adds
// the first, and runs out of registers.
#if defined(__AVX2__)
ATTUNE_INLINE void add_pairs(__m256i& sum, __m256i a, __m256i b) {
  __m256i product;
  asm("vpmaddwd %[b],%[a],%[product]\n vpaddd %[product],%[sum],%[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "x"(b));
}
#else
ATTUNE_INLINE void add_pairs(__m128i& sum, __m128i a, __m128i b) {
  __m128i product;
  asm("movdqa %[a],%[product]\n pmaddwd %[b],%[product]\n paddd %[product],%[sum]"
      : [sum] "+x"(sum), [product] "=&x"(product)
      : [a] "x"(a), [b] "x"(b));
}
#endif

#if defined(__AVX2__)

inline constexpr int kInt8RowsAtOnce = 6, kInt8TransposedRowsAtOnce = 6;

// Sums of 16 columns, eight of them at a time: even and odd pairs of k of four columns in a register.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::int8_t* weights, int, Int8Sums* sums) {
  for (int half = 0; half < 16; half += 8) {
    __m256i sum[std::size_t{kRows}][2];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int i = 0; i < kTerms; i += 4) {
      const auto* const from = reinterpret_cast<const __m128i*>(weights + 16 * i + 4 * half);
      const __m256i first = _mm256_cvtepu8_epi16(_mm_loadu_si128(from)),
                    second = _mm256_cvtepu8_epi16(_mm_loadu_si128(from + 1));
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        long long four;
        std::memcpy(&four, q + r * kTerms + i, sizeof four);
        const __m256i terms = _mm256_set1_epi64x(four);
        add_pairs(sum[r][0], first, terms);
        add_pairs(sum[r][1], second, terms);
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      const __m256i both = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum[r][0], sum[r][1]), 0xD8);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[r] + half), both);
    }
  }
}

#else

inline constexpr int kInt8RowsAtOnce = 2, kInt8TransposedRowsAtOnce = 2;

// Sums of 16 columns, eight of them at a time: even and odd pairs of k of two columns in a register.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const Int8Term* q, const std::int8_t* weights, int, Int8Sums* sums) {
  for (int half = 0; half < 16; half += 8) {
    __m128i sum[std::size_t{kRows}][4];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
      ATTUNE_UNROLL for (int b = 0; b < 4; ++b) sum[r][b] = _mm_setzero_si128();
    }
    for (int i = 0; i < kTerms; i += 4) {
      __m128i terms[std::size_t{kRows}];
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
          add_pairs(sum[r][b], low, terms[r]);
          add_pairs(sum[r][b + 1], high, terms[r]);
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

// Sums of 16 k over kTerms columns of W; each column takes `column` bytes. A register has four k of a pair of
// columns.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const Int8Term* q, const std::int8_t* weights, int column, int,
                                        Int8Sums* sums) {
  const __m128i zero = _mm_setzero_si128();
  for (int k = 0; k < 16; k += 4) {
    __m128i sum[std::size_t{kRows}];
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) sum[r] = zero;
    for (int i = 0; i < kTerms; i += 4) {
      __m128i columns;
      std::memcpy(&columns, weights + i / 16 * 16 * column + 16 * k + 4 * (i % 16), sizeof columns);
      const __m128i odd = _mm_srli_epi64(columns, 32);
      const __m128i first = _mm_unpacklo_epi8(_mm_unpacklo_epi8(columns, odd), zero),
                    second = _mm_unpacklo_epi8(_mm_unpackhi_epi8(columns, odd), zero);
      ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
        const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + r * kTerms + i));
        sum[r] = _mm_add_epi32(sum[r], _mm_madd_epi16(first, _mm_shuffle_epi32(four, 0x00)));
        sum[r] = _mm_add_epi32(sum[r], _mm_madd_epi16(second, _mm_shuffle_epi32(four, 0x55)));
      }
    }
    ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) std::memcpy(sums[r] + k, &sum[r], sizeof sum[r]);
  }
}

#endif

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#else
#define ATTUNE_INT8_X86 0
#endif
