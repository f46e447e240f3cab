// Attention of one query to keys and values in 8-bit integers: ops/kv_attention.hpp for an 8-bit cache.
//
//   scores[t] = float(Σ_k q[k]·key[t, k]) · (s_q·s_t)
//   sums[j]  += Σ_t p[t]·value[t, j]
//
// Keys and values are stored row by row. Integer sums are exact in any order, and have the bits of
// Int8Products (int8_products.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/kernels/simd/int8_rows.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

/// Σ x·y over kLength integers, at most 131,072.
template <int kLength>
ATTUNE_INLINE std::int32_t int8_dot(const std::int8_t* x, const std::int8_t* y) {
  std::int32_t sum = 0;
  int k = 0;
#if defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)
  for (; k + 4 <= kLength; k += 4) {  // bytes 0 and 2, then 1 and 3
    std::uint32_t a = 0, b = 0, low = 0, other = 0;
    std::memcpy(&a, x + k, sizeof a);
    std::memcpy(&b, y + k, sizeof b);
    asm("sxtb16 %0, %2\n sxtb16 %1, %3" : "=&r"(low), "=r"(other) : "r"(a), "r"(b));
    asm("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(low), "r"(other));
    asm("sxtb16 %0, %2, ror #8\n sxtb16 %1, %3, ror #8" : "=&r"(low), "=r"(other) : "r"(a), "r"(b));
    asm("smlad %0, %1, %2, %0" : "+r"(sum) : "r"(low), "r"(other));
  }
#endif
  for (; k < kLength; ++k) sum += x[k] * y[k];
  return sum;
}

}  // namespace detail

/// scores[count] of query[kDepth] and keys[count, kDepth], with the scales of both.
template <int kDepth>
[[gnu::noinline]] void int8_scores(int count, const std::int8_t* query, float query_scale,
                                   const std::int8_t* keys, const float* key_scales, float* scores) {
  static_assert(detail::Holds<(kDepth <= 131072)>,
                "attune::KeyValueCache: sums of 8-bit keys have at most 131,072 terms");
  for (int t = 0; t < count; ++t) {
    const std::int32_t sum = detail::int8_dot<kDepth>(query, keys + t * kDepth);
    scores[t] = multiply(static_cast<float>(sum), multiply(query_scale, key_scales[t]));
  }
}

/// A weight times the scale of its values. A weight of zero has no influence, whatever the scale is.
[[nodiscard]] ATTUNE_INLINE float folded_weight(float weight, float scale) {
  return weight == 0 ? 0 : multiply(weight, scale);
}
/// The maximum of `largest` and the bits of the largest of `count` folded weights.
[[gnu::noinline]] inline std::uint32_t largest_folded_weight(int count, const float* weights,
                                                             const float* scales, std::uint32_t largest) {
  for (int t = 0; t < count; ++t) {
    const std::uint32_t bits = magnitude_bits(folded_weight(weights[t], scales[t]));
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

/// sums[kCols] += Σ_t q(weights[t])·rows[t, kCols]. `inverse` is the inverse of the folded weights' scale.
template <int kCols, class Sum>
[[gnu::noinline]] void add_int8_rows(int count, const float* weights, const float* scales, float inverse,
                                     const std::int8_t* rows, Sum* sums) {
  for (int t = 0; t < count; ++t) {
    const int q = round_to_int8(multiply(folded_weight(weights[t], scales[t]), inverse));
    const std::int8_t* const row = rows + t * kCols;
    for (int j = 0; j < kCols; ++j) sums[j] += q * row[j];
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
