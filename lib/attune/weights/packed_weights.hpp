// 8-bit weights, multiplied in integer arithmetic: a storage like the ones in quantized_weights.hpp.
//
//   Model::ParametersOf<PackedInt8Weights, Tensor>             own
//   Model::ParametersOf<PackedInt8Reference, Reference>        elsewhere
//
// The numbers equal Int8Weights, and quantize() fills both alike. Only the product differs: it quantizes a
// row of activations, then sums integers (kernels/ops/int8_gemm.hpp), with instructions that are faster than
// the target's float arithmetic. Elements are stored in the order in which these instructions read them, so a
// packed set belongs to one kernels::Int8Order. Tables of embeddings stay Int8Weights, as they are looked up.
// The model's type does not change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

/// kCount packed columns of kLength integers, each column with a scale.
template <class ScalarType, int kCount, int kLength>
struct PackedInt8Rows {
  static_assert(detail::Holds<std::is_same_v<ScalarType, float>>,
                "attune: packed int8 weights need a model in float; use Int8Weights for double");
  using Element = Int8;
  using Scalar = ScalarType;
  using Packed = kernels::PackedInt8<kLength, kCount>;              // the order of the integers
  using Transposed = QuantizedRows<Int8, Scalar, kLength, kCount>;  // of a table
  static constexpr int count = kCount;
  static constexpr int length = kLength;  // elements of a column

  Scalar scales[static_cast<std::size_t>(kCount)];
  alignas(16) std::int8_t bytes[static_cast<std::size_t>(Packed::kBytes)];  // in the target's order

  /// Sets all integers to zero.
  constexpr void clear() { Packed::clear(bytes); }
  /// Sets element i of a column; call it once per element after clear().
  constexpr void set(int row, int i, Int8 element) { Packed::set(bytes, i, row, element.value); }
  /// Element i of a column.
  [[nodiscard]] constexpr Int8 at(int row, int i) const {
    return {static_cast<std::int8_t>(Packed::at(bytes, i, row))};
  }
  /// The first scale.
  [[nodiscard]] constexpr const Scalar* scale() const { return scales; }
  /// The view that products take.
  [[nodiscard]] constexpr auto packed_view() const {
    return kernels::PackedInt8View<kLength, kCount, kLength, kCount, false>{bytes, scales};
  }
};

/// A reference to PackedInt8Rows stored elsewhere.
template <class ScalarType, int kCount, int kLength>
struct PackedInt8RowsReference {
  using Element = Int8;
  using Scalar = ScalarType;
  using Packed = kernels::PackedInt8<kLength, kCount>;  // where integers stand
  using Transposed = QuantizedRowsReference<Int8, Scalar, kLength, kCount>;
  static constexpr int count = kCount;
  static constexpr int length = kLength;  // elements of a column

  const std::int8_t* bytes;  // aligned to 16
  const Scalar* scales;

  /// Element i of a column.
  [[nodiscard]] constexpr Int8 at(int row, int i) const {
    return {static_cast<std::int8_t>(Packed::at(bytes, i, row))};
  }
  /// The first scale.
  [[nodiscard]] constexpr const Scalar* scale() const { return scales; }
  /// The view that products take.
  [[nodiscard]] constexpr auto packed_view() const {
    return kernels::PackedInt8View<kLength, kCount, kLength, kCount, false>{bytes, scales};
  }
};

/// 8-bit integers with a scale per output, [in, out], multiplied in integer arithmetic.
template <class Scalar, int rows, int cols>
using PackedInt8Weights = QuantizedWeights<PackedInt8Rows<Scalar, cols, rows>>;
/// PackedInt8Weights stored elsewhere.
template <class Scalar, int rows, int cols>
using PackedInt8Reference = QuantizedWeights<PackedInt8RowsReference<Scalar, cols, rows>>;

template <class Scalar, int count, int length>
[[nodiscard]] constexpr auto reference_to(
    const QuantizedWeights<PackedInt8Rows<Scalar, count, length>>& weight) {
  return PackedInt8Reference<Scalar, length, count>{{weight.stored.bytes, weight.stored.scales}};
}

}  // namespace ATTUNE_NAMESPACE
