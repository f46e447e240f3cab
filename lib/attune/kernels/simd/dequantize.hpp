// Products with a quantized B (quantized.hpp): B is dequantized while it is read, packet by packet.
//
//   C[M, N] = epilogue(A[M, K] · B[K, N])     with B = dequantize(Q)·diag(s), diag(s)·dequantize(Q), or
//   dequantize(Q)
//
// Scales of columns multiply finished sums, s_j·Σ_k a_ik·q_kj; if a sum has several blocks, each block's sum.
// Scales of rows multiply B's elements, Σ_k a_ik·(s_k·q_kj). Each product with a scale is rounded once.
#pragma once

#include <concepts>
#include <cstring>

#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/quantized.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// The scaled dimension of a QuantizedView.
enum class ScalesOf { kNothing, kRows, kColumns };

/// A matrix of quantized elements in someone else's storage, with strides as in MatrixView.
template <class ElementType, class ScalarType, int kRows, int kCols, int kRowStride, int kColStride,
          ScalesOf kScalesOf>
struct QuantizedView {
  using Element = ElementType;
  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int row_stride = kRowStride;
  static constexpr int col_stride = kColStride;

  const Element* data;
  const Scalar* scale;  // nullptr without scales

  [[nodiscard]] constexpr auto transpose() const {
    constexpr ScalesOf kOther = kScalesOf == ScalesOf::kRows      ? ScalesOf::kColumns
                                : kScalesOf == ScalesOf::kColumns ? ScalesOf::kRows
                                                                  : ScalesOf::kNothing;
    return QuantizedView<Element, Scalar, kCols, kRows, kColStride, kRowStride, kOther>{data, scale};
  }
  template <int kCount>
  [[nodiscard]] constexpr auto columns(int first) const {
    const Scalar* scales = kScalesOf == ScalesOf::kColumns ? scale + first : scale;
    return QuantizedView<Element, Scalar, kRows, kCount, kRowStride, kColStride, kScalesOf>{
        data + first * kColStride, scales};
  }
};

namespace detail {

template <class T, int size>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * static_cast<unsigned>(size))));
};
template <class T, int size>
using Vector = typename VectorOf<T, size>::type;

// A vector of the elements' values or bits, from unaligned memory.
template <class T, int size, class Element>
ATTUNE_INLINE Vector<T, size> load_vector(const Element* from) {
  Vector<T, size> vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <int size>
ATTUNE_INLINE Vector<float, size> dequantize_vector(const Int8* from) {
  const auto integers =
      __builtin_convertvector((load_vector<std::int8_t, size>(from)), Vector<std::int32_t, size>);
  return __builtin_convertvector(integers, Vector<float, size>);
}
template <int size>
ATTUNE_INLINE Vector<float, size> dequantize_vector(const Bfloat16* from) {
  const auto bits =
      __builtin_convertvector((load_vector<std::uint16_t, size>(from)), Vector<std::uint32_t, size>);
  return reinterpret_cast<Vector<float, size>>(bits << 16);
}
template <int size>
ATTUNE_INLINE Vector<float, size> dequantize_vector(const Float16* from) {
  using Bits = Vector<std::uint32_t, size>;
  const Bits half = __builtin_convertvector((load_vector<std::uint16_t, size>(from)), Bits);
  const Bits fraction = half & 0x3FFu, exponent = half & 0x7C00u;
  // fraction · 2⁻²⁴ if the exponent is 0; twice the bias for infinities and NaNs.
  const auto subnormal = reinterpret_cast<Bits>(
      __builtin_convertvector(reinterpret_cast<Vector<std::int32_t, size>>(fraction), Vector<float, size>) *
      0x1p-24f);
  constexpr std::uint32_t kBias = (127u - 15u) << 23;
  const Bits none = Bits{} + kBias;
  const Bits normal = ((half & 0x7FFFu) << 13) + (exponent == 0x7C00u ? none + kBias : none);
  return reinterpret_cast<Vector<float, size>>((half & 0x8000u) << 16 |
                                               (exponent == 0u ? subnormal : normal));
}

#if ATTUNE_MVE
// Four elements kStep apart, sign-extended or not.
template <int kStep>
ATTUNE_INLINE int32x4_t load_four(const Int8* from) {
  const auto* bytes = reinterpret_cast<const std::int8_t*>(from);
  if constexpr (kStep == 1) return vldrbq_s32(bytes);
  return vldrbq_gather_offset_s32(bytes, vmulq_n_u32(vidupq_n_u32(0, 1), kStep));
}
template <int kStep, class Half>
ATTUNE_INLINE uint32x4_t load_four(const Half* from) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  if constexpr (kStep == 1) return vldrhq_u32(halves);
  return vldrhq_gather_shifted_offset_u32(halves, vmulq_n_u32(vidupq_n_u32(0, 1), kStep));
}
template <int kStep>
ATTUNE_INLINE float32x4_t dequantize_mve(const Int8* from) {
  return vcvtq_f32_s32(load_four<kStep>(from));
}
template <int kStep>
ATTUNE_INLINE float32x4_t dequantize_mve(const Bfloat16* from) {
  return vreinterpretq_f32_u32(vshlq_n_u32(load_four<kStep>(from), 16));
}
// Without vcvtb: QEMU 7 treats it as undefined with some registers.
template <int kStep>
ATTUNE_INLINE float32x4_t dequantize_mve(const Float16* from) {
  const uint32x4_t half = load_four<kStep>(from);
  const uint32x4_t magnitude = vandq_u32(half, vdupq_n_u32(0x7FFF));
  constexpr std::uint32_t kBias = (127u - 15u) << 23;
  const uint32x4_t normal = vaddq_n_u32(vshlq_n_u32(magnitude, 13), kBias);
  const uint32x4_t finite = vpselq_u32(vaddq_n_u32(normal, kBias), normal, vcmphiq_n_u32(magnitude, 0x7BFF));
  const uint32x4_t subnormal = vreinterpretq_u32_f32(vmulq_n_f32(vcvtq_f32_u32(magnitude), 0x1p-24f));
  const uint32x4_t value = vpselq_u32(finite, subnormal, vcmpcsq_n_u32(magnitude, 0x400));
  return vreinterpretq_f32_u32(vorrq_u32(value, vshlq_n_u32(veorq_u32(half, magnitude), 16)));
}
#endif

// Dequantizes one element, as the FPU does. With lanes, the same number in each lane.
template <class Scalar, class Element>
ATTUNE_INLINE Scalar dequantize_scalar(Element element) {
  return static_cast<Scalar>(attune::dequantize(element));
}
template <class Scalar, std::floating_point Number>
ATTUNE_INLINE Scalar dequantize_scalar(Number number) {
  return Scalar(number);
}
#if ATTUNE_CORTEX_M_FPU
template <class Scalar>
ATTUNE_INLINE Scalar dequantize_scalar(Float16 element) {
  float value = std::bit_cast<float>(std::uint32_t{element.bits});
  asm("vcvtb.f32.f16 %0,%0" : "+t"(value));
  return static_cast<Scalar>(value);
}
#endif

/// Whether a packet of B may be gathered from elements that are not adjacent.
template <class P, class B>
inline constexpr bool kGathers = [] {
#if ATTUNE_MVE
  return std::is_same_v<P, float32x4_t> && !std::is_same_v<B, const float*>;
#else
  return false;
#endif
}();

/// A packet of B's numbers, dequantized if necessary; kStep apart when gathering.
template <class P, int kStep = 1, class Stored>
ATTUNE_INLINE P load_of_b(const Stored* from) {
  using Scalar = ScalarOf<P>;
  if constexpr (std::is_same_v<Stored, Scalar>) {
    return load<P>(from);
  } else if constexpr (kLanes<P> == 1) {
    return broadcast<P>(dequantize_scalar<Scalar>(*from));
#if ATTUNE_MVE
  } else if constexpr (std::is_same_v<P, float32x4_t>) {
    return dequantize_mve<kStep>(from);
#endif
  } else {
    constexpr int kWidth = kLanes<P>;
    const auto values = __builtin_convertvector(dequantize_vector<kWidth>(from), Vector<Scalar, kWidth>);
    return P(values);
  }
}

// B as a product steps through it: elements, and a scale per row.
template <class Element, class Scalar>
struct ScaledRows {
  const Element* first;
  const Scalar* scale;

  ATTUNE_INLINE friend ScaledRows operator+(const ScaledRows& b, int columns) {
    return {b.first + columns, b.scale};
  }
};

template <class Stored>
ATTUNE_INLINE const Stored* elements_of(const Stored* b) {
  return b;
}
template <class Element, class Scalar>
ATTUNE_INLINE const Element* elements_of(const ScaledRows<Element, Scalar>& b) {
  return b.first;
}
/// Scales a part of row k.
template <class P, class Stored>
ATTUNE_INLINE P scaled_row(const Stored*, int, const P& row) {
  return row;
}
template <class P, class Element, class Scalar>
ATTUNE_INLINE P scaled_row(const ScaledRows<Element, Scalar>& b, int k, const P& row) {
  return multiply(row, broadcast<P>(b.scale[k]));
}
/// Part of row k of B, `offset` elements after B's start.
template <class P, int kStep = 1, class B>
ATTUNE_INLINE P load_row(const B& b, int offset, int k) {
  return scaled_row(b, k, load_of_b<P, kStep>(elements_of(b) + offset));
}
/// B from row k on, `offset` elements after its start.
template <class Stored>
ATTUNE_INLINE const Stored* rows_from(const Stored* b, int offset, int) {
  return b + offset;
}
template <class Element, class Scalar>
ATTUNE_INLINE ScaledRows<Element, Scalar> rows_from(const ScaledRows<Element, Scalar>& b, int offset, int k) {
  return {b.first + offset, b.scale + k};
}

/// The operand of a product, from the view of B.
template <class View>
ATTUNE_INLINE auto operand_of(const View& b) {
  return static_cast<const typename View::Scalar*>(b.data);
}
template <class Element, class Scalar, int kRows, int kCols, int kRowStride, int kColStride,
          ScalesOf kScalesOf>
ATTUNE_INLINE auto operand_of(
    const QuantizedView<Element, Scalar, kRows, kCols, kRowStride, kColStride, kScalesOf>& b) {
  return b.data;
}
template <class Element, class Scalar, int kRows, int kCols, int kRowStride, int kColStride>
ATTUNE_INLINE auto operand_of(
    const QuantizedView<Element, Scalar, kRows, kCols, kRowStride, kColStride, ScalesOf::kRows>& b) {
  return ScaledRows<Element, Scalar>{b.data, b.scale};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels
