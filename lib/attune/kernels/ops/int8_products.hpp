// Products of two float matrices in 8-bit integers; both are quantized during the call.
//
//   C[r, j] = epilogue(Σ_k A[r, k]·B[k, j])
//
// B's vectors, its rows or a transpose's columns (Major, matrix_view.hpp), are quantized and packed like the
// columns of a weight matrix (simd/packed_int8.hpp). This happens for some columns of C at a time, on the
// stack. Scales of rows are folded into A, whose rows are quantized next (int8_gemm.hpp). So a row of
// numbers, such as a token, has one scale in all its products:
//
//   y = x·W        x per token, W per output          Q·Kᵀ     both per token
//   dx = dy·Wᵀ     dy, times W's scales, per token    P·V      V per token, P times those per query
//   dW = xᵀ·dy     dy per token, xᵀ, times those scales, per input
//
// Bits are the same on all targets, and do not depend on how calls split the rows of C. A part of the terms
// has its own scales, so no call may split them by a constant of the target: Continue does not compile, and
// NextBlock adds blocks that the algorithm chose.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/int8_short_gemm.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/ops/int8_gemm.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

/// The scale of contiguous numbers.
inline RowScale row_scale_of(const float* x, int length) {
#if ATTUNE_INT8_X86 || ATTUNE_INT8_NEON || ATTUNE_MVE
  return row_scale(largest_magnitude_bits<false>(x, nullptr, length));
#else
  int i = 0;
  std::uint32_t largest = 0;
#if ATTUNE_INT8_DSP
  largest = twice_largest<false>(x, nullptr, length / 8) >> 1;
  i = length / 8 * 8;
#endif
  for (; i < length; ++i) largest = larger(largest, magnitude_bits(x[i]));
  return row_scale(largest);
#endif
}
/// The scales of `count` vectors of `length` numbers, `stride` apart.
[[gnu::noinline]] inline void scales_of_vectors(const float* x, int stride, int count, int length,
                                                float* scales, float* inverses) {
  for (int i = 0; i < count; ++i) {
    const RowScale of_vector = row_scale_of(x + i * stride, length);
    scales[i] = of_vector.scale;
    inverses[i] = of_vector.inverse;
  }
}

/// Rounds such vectors to the first columns of a packed matrix. Bytes beside them have no influence.
template <class Packed>
[[gnu::noinline]] void pack_vectors(const float* x, int stride, int count, int length, const float* inverses,
                                    std::int8_t* bytes) {
#if ATTUNE_INT8_DSP
  if (length <= Packed::kDepth - 16 || count <= Packed::kCols - 2) Packed::clear(bytes);
  for (int col = 0; col < count; col += 2) {
    const int next = smaller(col + 1, count - 1);
    pack_pair(x + col * stride, x + next * stride, length, inverses[col], next > col ? inverses[next] : 0,
              bytes + Packed::place(0, col), 16 * Packed::kCols);
  }
#elif ATTUNE_INT8_X86
  alignas(64) Int8Term integers[std::size_t{Packed::kDepth}] = {};
  const auto pack_column = [&](int col) ATTUNE_INLINE_LAMBDA {
    std::int8_t* const to = bytes + Packed::place(0, col);
    for (int k = 0; k < Packed::kDepth; k += 4) {
      std::uint32_t four = 0;
      if constexpr (sizeof(Int8Term) == 1) {
        std::memcpy(&four, integers + k, sizeof four);
      } else {
        for (int i = 0; i < 4; ++i) four |= (static_cast<std::uint32_t>(integers[k + i]) & 0xFFu) << 8 * i;
      }
      four ^= 0x80808080u;  // + 128
      std::memcpy(to + 16 * k, &four, sizeof four);
    }
  };
  for (int col = count; col < Packed::kCols; ++col) pack_column(col);  // zeros
  for (int col = 0; col < count; ++col) {
    round_row<false>(x + col * stride, nullptr, length, inverses[col], integers);
    pack_column(col);
  }
#elif ATTUNE_INT8_NEON
  for (int col = 0; col < count; ++col) {  // others meet zeros of A, or a scale of zero
    round_row<false>(x + col * stride, nullptr, length, inverses[col], bytes + Packed::place(0, col),
                     Packed::kDepth);
  }
#elif ATTUNE_MVE
  for (int col = 0; col < count; ++col) {  // others meet zeros of A, or a scale of zero
    round_row<false>(x + col * stride, nullptr, length, inverses[col], bytes + Packed::place(0, col));
  }
#else
  Packed::clear(bytes);
  for (int col = 0; col < count; ++col) {
    for (int k = 0; k < length; ++k) {
      Packed::set(bytes, k, col, round_to_int8(multiply(x[col * stride + k], inverses[col])));
    }
  }
#endif
}

}  // namespace detail

/// Replaces FloatProducts (zero_skipping.hpp): computes sums of at least `least_depth` terms in integers.
template <int least_depth>
struct Int8ProductsFrom {
  /// Shorter sums stay float sums, unless B has many columns.
  static constexpr int kMinDepth = least_depth;
  /// The number of columns from which on B has many, if its vectors are rows: many sums share a packed
  /// number. Gradients of weights are an example.
  static constexpr int kManyColumns = 32;
  /// Their shorter sums stay float sums.
  static constexpr int kMinDepthOfMany = smaller(8, least_depth);

  /// Whether A·B is computed in integers. All targets agree, however calls split the rows of C.
  template <class A, class B, class C>
  static consteval bool in_integers() {
    constexpr int kMin = B::kMajor == Major::kRow && B::cols >= kManyColumns ? kMinDepthOfMany : kMinDepth;
    return std::is_same_v<std::remove_const_t<typename C::Scalar>, float> && A::cols >= kMin;
  }

  /// C = epilogue(A·B). Extents as in gemm; C may not overlap A or B. Other scalars than float, and short
  /// sums, use the float product.
  template <class A, class B, class C, class Epilogue = Assign>
  ATTUNE_INLINE static void gemm(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
    if constexpr (in_integers<A, B, C>()) {
      by_columns<false>(a, b, c, summed(epilogue));
    } else {
      FloatProducts::gemm(a, b, c, epilogue);
    }
  }
  /// The same for values that are not all finite. Skips terms with an all-zero row of B, or with a zero
  /// element of A, whatever the other factor is. B's vectors are rows.
  template <class A, class B, class C, class Epilogue = Assign>
    requires(in_integers<A, B, C>() && B::kMajor == Major::kRow)
  static void gemm_without_zeros(const A& a, const B& b, const C& c, Epilogue epilogue = {}) {
    by_columns<true>(a, b, c, summed(epilogue));
  }

 private:
  template <class Epilogue>
  static constexpr auto summed(const Epilogue& epilogue) {
    static_assert(detail::Holds<!std::is_same_v<Epilogue, Continue>>,
                  "attune::kernels::Int8Products: a part of the terms has its own scales, so integer sums "
                  "cannot be continued; multiply all terms in one call, or add blocks with NextBlock");
    if constexpr (std::is_same_v<Epilogue, NextBlock> || std::is_same_v<Epilogue, Continue>) {
      return Accumulate{};
    } else {
      return epilogue;
    }
  }
  /// Scales of B's vectors: of all its rows, or of the columns packed at once.
  template <class B>
  struct Scales {
    static constexpr int kCount =
        B::kMajor == Major::kRow ? B::rows : smaller(B::cols, detail::packed_columns_at_once(B::rows));
    float scale[std::size_t{kCount}], inverse[std::size_t{kCount}];
  };

  template <bool kSkipsZeros, class A, class B, class C, class Epilogue>
  ATTUNE_INLINE static void by_columns(const A& a, const B& b, const C& c, const Epilogue& epilogue) {
    constexpr int kBlock = columns_at_once<kSkipsZeros, B, Epilogue>();
    constexpr int kWhole = B::cols / kBlock * kBlock;
    Scales<B> scales;
    if constexpr (B::kMajor == Major::kRow) {
      detail::scales_of_vectors(b.data, B::row_stride, terms_of(a, b), used_cols(b), scales.scale,
                                scales.inverse);
    }
    if constexpr (kWhole > 0) {
      for (int first = 0; first < kWhole && first < used_cols(b); first += kBlock) {
        columns<kBlock, kSkipsZeros>(a, b, c, first, scales, epilogue);
      }
    }
    if constexpr (kWhole < B::cols) {
      if (kWhole < used_cols(b)) columns<B::cols - kWhole, kSkipsZeros>(a, b, c, kWhole, scales, epilogue);
    }
  }
  // Whether a target has products with short sums of integers.
  template <bool kSkipsZeros, class B, class Epilogue>
  static consteval bool is_short() {
#if ATTUNE_INT8_DSP
    return !kSkipsZeros && B::kMajor == Major::kRow && B::rows <= detail::kInt8ShortTerms &&
           (std::is_same_v<Epilogue, Assign> || std::is_same_v<Epilogue, Accumulate>);
#else
    return false;
#endif
  }
  template <bool kSkipsZeros, class B, class Epilogue>
  static consteval int columns_at_once() {
#if ATTUNE_INT8_DSP
    if (is_short<kSkipsZeros, B, Epilogue>()) return 4096 / detail::short_column_bytes(B::rows);
#endif
    return detail::packed_columns_at_once(B::rows);
  }
  // The number of terms of the sums.
  template <class A, class B>
  ATTUNE_INLINE static auto terms_of(const A& a, const B& b) {
    if constexpr (std::is_empty_v<decltype(used_cols(a))> && std::is_empty_v<decltype(used_rows(b))>) {
      return std::integral_constant<int, A::cols>{};
    } else {
      return smaller<int>(used_cols(a), used_rows(b));
    }
  }
  // Some columns of C.
  template <int kCols, bool kSkipsZeros, class A, class B, class C, class Epilogue>
  static void columns(const A& a, const B& b, const C& c, int first, Scales<B>& scales,
                      const Epilogue& epilogue) {
    constexpr int kDepth = B::rows;
    const auto terms = terms_of(a, b);
    const int cols = smaller<int>(used_cols(b) - first, kCols);
    const float* const from = b.data + first * B::col_stride;
    if constexpr (B::kMajor == Major::kColumn) {
      static_assert(detail::Holds<(B::row_stride == 1)>,
                    "attune::kernels::gemm: numbers of a vector of B must be contiguous");
      using Packed = PackedInt8<kDepth, kCols>;
      alignas(64) std::int8_t bytes[std::size_t{Packed::kBytes}];
      detail::scales_of_vectors(from, B::col_stride, cols, terms, scales.scale, scales.inverse);
      detail::pack_vectors<Packed>(from, B::col_stride, cols, terms, scales.inverse, bytes);
      for (int col = cols; col < kCols; ++col) scales.scale[col] = 0;
      kernels::gemm(a,
                    PackedInt8View<kDepth, kCols, kDepth, kCols, false, std::remove_const_t<decltype(terms)>>{
                        bytes, scales.scale, 0, terms},
                    c.template columns<kCols>(first), epilogue);
    } else {
      static_assert(detail::Holds<(B::col_stride == 1)>,
                    "attune::kernels::gemm: numbers of a vector of B must be contiguous");
#if ATTUNE_INT8_DSP
      if constexpr (is_short<kSkipsZeros, B, Epilogue>()) {
        constexpr detail::Int8Shape kShape{kDepth, kCols, A::row_stride, A::col_stride, C::row_stride};
        return detail::short_int8_gemm<kShape, std::is_same_v<Epilogue, Accumulate>>(
            a.data, smaller<int>(used_rows(a), used_rows(c)), from, B::row_stride, terms, cols, scales.scale,
            scales.inverse, c.template columns<kCols>(first).data);
      }
#endif
#if ATTUNE_MVE || ATTUNE_INT8_X86 || ATTUNE_INT8_NEON  // sums over contiguous integers are faster
      if constexpr (!kSkipsZeros && kDepth <= detail::kInt8MostTerms) {
        using Packed = PackedInt8<kDepth, kCols>;
        alignas(64) std::int8_t bytes[std::size_t{PackedInt8<kDepth, (kCols + 15) / 16 * 16>::kBytes}];
        detail::pack_rows<Packed>(from, B::row_stride, terms, cols, scales.inverse, bytes);
        constexpr detail::Int8Shape kShape{kDepth, kCols, A::row_stride, A::col_stride, C::row_stride};
        const FoldedInt8View<kDepth, kCols, std::remove_const_t<decltype(terms)>> rows{
            {bytes, scales.scale, 0, terms}};
        return detail::int8_gemm<kShape>(a.data, smaller<int>(used_rows(a), used_rows(c)), rows,
                                         c.template columns<kCols>(first).data, epilogue);
      }
#endif
      using Packed = PackedInt8<kCols, kDepth>;
      alignas(64) std::int8_t bytes[std::size_t{Packed::kBytes}];
      detail::pack_vectors<Packed>(from, B::row_stride, terms, cols, scales.inverse, bytes);
      const auto to = c.template columns<kCols>(first);
      using Rows = PackedInt8View<kCols, kDepth, kDepth, kCols, true, std::remove_const_t<decltype(terms)>>;
      if constexpr (kSkipsZeros) {
        float row[std::size_t{kDepth}], ones[std::size_t{kDepth}];
        fill_n(ones, kDepth, 1.0f);
        for (int i = 0; i < smaller<int>(used_rows(a), used_rows(c)); ++i) {
          for (int k = 0; k < terms; ++k) {
            const float x = a.data[i * A::row_stride + k * A::col_stride];
            row[k] = x == 0 || scales.scale[k] == 0 ? 0 : multiply(x, scales.scale[k]);
          }
          kernels::gemm(MatrixView<const float, 1, kDepth>(static_cast<const float*>(row)),
                        Rows{bytes, ones, 0, terms}, to.template rows_at<1>(i), epilogue);
        }
      } else {
        kernels::gemm(a, Rows{bytes, scales.scale, 0, terms}, to, epilogue);
      }
    }
  }
};
/// Of sums that are faster in integers: packing takes longer than a short sum of floats, unless many sums
/// share the packed numbers.
using Int8Products = Int8ProductsFrom<16>;
/// Of all sums, however short, as in a stream whose cache is in 8 bits (attention/key_value_blocks.hpp).
using Int8CacheProducts = Int8ProductsFrom<1>;

}  // namespace ATTUNE_NAMESPACE::kernels
