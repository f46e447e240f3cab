// Weights of 8 bits that are multiplied in integers: forms as those of quantized_weights.hpp.
//
//   Model::ParametersOf<PackedInt8Weights, Tensor>             own
//   Model::ParametersOf<PackedInt8Reference, Reference>        elsewhere
//
// The numbers are those of Int8Weights, and quantize() makes them alike. What differs is the product: a row
// of activations is quantized first, and sums are sums of integers (kernels/ops/int8_gemm.hpp), for which the
// target has faster instructions than for floats. Elements stand in the order in which it reads them, so a
// packed set is for targets of one kernels::Int8Order. Tables of embeddings stay Int8Weights, which are
// looked up. Models are those of float.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/weights/quantized_weights.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// kCount columns of kLength integers, packed, each column with its scale.
template <class ScalarType, int kCount, int kLength>
struct PackedInt8Rows {
  static_assert(std::is_same_v<ScalarType, float>,
                "attune: packed int8 weights are those of models in float; double takes Int8Weights");
  using Element = Int8;
  using Scalar = ScalarType;
  using Packed = kernels::PackedInt8<kLength, kCount>;              // where integers stand
  using Transposed = QuantizedRows<Int8, Scalar, kLength, kCount>;  // of a table
  static constexpr int count = kCount;
  static constexpr int length = kLength;  // elements of a column

  Scalar scales[static_cast<std::size_t>(kCount)];
  alignas(16) std::int8_t bytes[static_cast<std::size_t>(Packed::kBytes)];  // in the target's order

  /// All integers are zero.
  constexpr void clear() { Packed::clear(bytes); }
  /// Element i of a column, once for each behind clear().
  constexpr void set(int row, int i, Int8 element) { Packed::set(bytes, i, row, element.value); }
  /// Element i of a column.
  [[nodiscard]] constexpr Int8 at(int row, int i) const {
    return {static_cast<std::int8_t>(Packed::at(bytes, i, row))};
  }
  /// The first scale.
  [[nodiscard]] constexpr const Scalar* scale() const { return scales; }
  /// As products take it.
  [[nodiscard]] constexpr auto packed_view() const {
    return kernels::PackedInt8View<kLength, kCount, kLength, kCount, false>{bytes, scales};
  }
};

/// The same elsewhere.
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
  /// As products take it.
  [[nodiscard]] constexpr auto packed_view() const {
    return kernels::PackedInt8View<kLength, kCount, kLength, kCount, false>{bytes, scales};
  }
};

/// 8-bit integers with a scale for each output, [in, out], multiplied in integers.
template <class Scalar, int rows, int cols>
using PackedInt8Weights = QuantizedWeights<PackedInt8Rows<Scalar, cols, rows>>;
/// PackedInt8Weights that stand elsewhere.
template <class Scalar, int rows, int cols>
using PackedInt8Reference = QuantizedWeights<PackedInt8RowsReference<Scalar, cols, rows>>;

template <class Scalar, int count, int length>
[[nodiscard]] constexpr auto reference_to(
    const QuantizedWeights<PackedInt8Rows<Scalar, count, length>>& weight) {
  return PackedInt8Reference<Scalar, length, count>{{weight.stored.bytes, weight.stored.scales}};
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
