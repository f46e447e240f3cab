// Weights of 8 and 16 bits, for inference and as constants in training: kinds of storage, as in weights.hpp.
//
//   Int8Weights         own, integers with a scale for each output
//   Bfloat16Weights     own, the upper halves of floats
//   Float16Weights      own, IEEE 754 binary16
//   Int8Reference, Bfloat16Reference, Float16Reference       elsewhere
//
//   Model::ParametersOf<Int8Weights, Tensor>   // biases and norms stay floats
//
// Stored as PyTorch's weights, [out, in]: row j has the numbers q_j of output j. Products dequantize them on
// the fly, never in memory:
//
//   y_j  = s_j·Σ_i x_i·q_ij         once for each kernels::kDepthBlock inputs, which are then added
//   dx_i = Σ_j dy_j·(s_j·q_ij)      with the bits of a matrix of the s_j·q_ij
//
// q_ij becomes a float exactly; the factor s_j rounds once; without scales nothing rounds. The table of an
// embedding has a scale per row: token i is s_i·q_i. Positions stay floats. weights/quantize.hpp fills such
// sets.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/kernels/ops/int8_gemm.hpp>
#include <attune/kernels/quantized.hpp>
#include <attune/kernels/simd/dequantize.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// kCount rows of kLength quantized elements. Each row has a scale, if its elements need one.
template <class ElementType, class ScalarType, int kCount, int kLength>
struct QuantizedRows {
  using Element = ElementType;
  using Scalar = ScalarType;
  using Transposed = QuantizedRows<Element, Scalar, kLength, kCount>;
  static constexpr int count = kCount;
  static constexpr int length = kLength;  // elements of a row
  /// Replaces the scales, if elements have none.
  struct NoScales {};
  using Scales = Scalar[static_cast<std::size_t>(kCount)];

  [[no_unique_address]] std::conditional_t<Element::kScaled, Scales, NoScales> scales;
  Element elements[static_cast<std::size_t>(kCount * kLength)];  // row after row

  [[nodiscard]] constexpr const Element* data() const { return elements; }
  /// Element i of a row.
  [[nodiscard]] constexpr Element at(int row, int i) const { return elements[row * kLength + i]; }
  /// Sets element i of a row.
  constexpr void set(int row, int i, Element element) { elements[row * kLength + i] = element; }
  /// The first scale; nullptr if elements have none.
  [[nodiscard]] constexpr const Scalar* scale() const {
    if constexpr (Element::kScaled) {
      return scales;
    } else {
      return nullptr;
    }
  }
};

/// A reference to QuantizedRows stored elsewhere: consecutive rows, `offset` bytes after `base`, and their
/// scales.
template <class ElementType, class ScalarType, int kCount, int kLength>
struct QuantizedRowsReference {
  using Element = ElementType;
  using Scalar = ScalarType;
  using Transposed = QuantizedRowsReference<Element, Scalar, kLength, kCount>;
  static constexpr int count = kCount;
  static constexpr int length = kLength;  // elements of a row

  const void* base;  // may be the start of a file, so that constants can refer into it
  std::size_t offset;
  const Scalar* scales;

  [[nodiscard]] const Element* data() const {
    return reinterpret_cast<const Element*>(static_cast<const char*>(base) + offset);
  }
  /// Element i of a row.
  [[nodiscard]] Element at(int row, int i) const { return data()[row * kLength + i]; }
  /// The first scale; nullptr if elements have none.
  [[nodiscard]] constexpr const Scalar* scale() const { return scales; }
};

namespace detail {

// The dequantized element.
template <class Rows>
constexpr auto quantized_value(const Rows& stored, int row, int col) {
  using Scalar = typename Rows::Scalar;
  const auto value = static_cast<Scalar>(dequantize(stored.at(row, col)));
  return Rows::Element::kScaled ? stored.scale()[row] * value : value;
}

template <class Weight>
constexpr void refuse_quantized() {
  static_assert(Holds<(sizeof(Weight*) == 0)>,
                "attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it "
                "into ParametersOf<Int8Weights, Tensor>");
}

}  // namespace detail

/// A weight W[rows, cols] as quantized rows, one for each of its columns.
template <class Rows>
struct QuantizedWeights {
  using Scalar = typename Rows::Scalar;
  static constexpr int rows = Rows::length;
  static constexpr int cols = Rows::count;
  static constexpr int size = rows * cols;
  /// Whether this storage is packed or has a packed form (packed_weights.hpp).
  static constexpr bool kHasPackedForm = std::is_same_v<typename Rows::Element, Int8>;

  Rows stored;

  /// The dequantized W_row,col.
  [[nodiscard]] constexpr Scalar operator()(int row, int col) const {
    return detail::quantized_value(stored, col, row);
  }
  template <class Weight = QuantizedWeights>
  constexpr void set_zero() {
    detail::refuse_quantized<Weight>();
  }
  template <class Weight = QuantizedWeights>
  constexpr const Scalar* data() const {
    detail::refuse_quantized<Weight>();
    return nullptr;
  }
};

/// A table [rows, cols] as quantized rows.
template <class Rows>
struct QuantizedTable {
  using Scalar = typename Rows::Scalar;
  static constexpr int rows = Rows::count;
  static constexpr int cols = Rows::length;
  static constexpr int size = rows * cols;

  Rows stored;

  /// The dequantized element (row, col).
  [[nodiscard]] constexpr Scalar operator()(int row, int col) const {
    return detail::quantized_value(stored, row, col);
  }
};

namespace detail {

/// Weights or a table of 8 or 16 bits, const or not.
template <class Form>
concept IsQuantizedForm = kIsSpecialization<std::remove_cvref_t<Form>, QuantizedWeights> ||
    kIsSpecialization<std::remove_cvref_t<Form>, QuantizedTable>;

// The type of the stored numbers.
template <class Form>
struct ElementOfFormIs {
  using type = typename Form::Scalar;
};
template <class Form>
  requires IsQuantizedForm<Form>
struct ElementOfFormIs<Form> {
  using type = typename decltype(Form::stored)::Element;
};
template <class Form>
using ElementOfForm = typename ElementOfFormIs<Form>::type;

}  // namespace detail

/// 8-bit integers with a scale per output, [in, out].
template <class Scalar, int rows, int cols>
using Int8Weights = QuantizedWeights<QuantizedRows<Int8, Scalar, cols, rows>>;
/// 16 bits: the upper half of a float, [in, out].
template <class Scalar, int rows, int cols>
using Bfloat16Weights = QuantizedWeights<QuantizedRows<Bfloat16, Scalar, cols, rows>>;
/// 16 bits: IEEE 754 binary16, [in, out].
template <class Scalar, int rows, int cols>
using Float16Weights = QuantizedWeights<QuantizedRows<Float16, Scalar, cols, rows>>;
/// Int8Weights stored elsewhere, for example in a file.
template <class Scalar, int rows, int cols>
using Int8Reference = QuantizedWeights<QuantizedRowsReference<Int8, Scalar, cols, rows>>;
/// Bfloat16Weights stored elsewhere.
template <class Scalar, int rows, int cols>
using Bfloat16Reference = QuantizedWeights<QuantizedRowsReference<Bfloat16, Scalar, cols, rows>>;
/// Float16Weights stored elsewhere.
template <class Scalar, int rows, int cols>
using Float16Reference = QuantizedWeights<QuantizedRowsReference<Float16, Scalar, cols, rows>>;

namespace detail {

template <class Rows>
struct TableForm<QuantizedWeights<Rows>> {
  using type = QuantizedTable<typename Rows::Transposed>;
};

template <class Element, class Scalar, int count, int length>
struct FloatForm<QuantizedTable<QuantizedRows<Element, Scalar, count, length>>> {
  using type = Tensor<Scalar, count, length>;
};
template <class Element, class Scalar, int count, int length>
struct FloatForm<QuantizedTable<QuantizedRowsReference<Element, Scalar, count, length>>> {
  using type = Reference<Scalar, count, length>;
};

}  // namespace detail

template <class Element, class Scalar, int count, int length>
[[nodiscard]] constexpr QuantizedRowsReference<Element, Scalar, count, length> reference_to(
    const QuantizedRows<Element, Scalar, count, length>& rows) {
  return {rows.elements, 0, rows.scale()};
}
template <class Element, class Scalar, int count, int length>
[[nodiscard]] constexpr auto reference_to(
    const QuantizedWeights<QuantizedRows<Element, Scalar, count, length>>& weight) {
  return QuantizedWeights<QuantizedRowsReference<Element, Scalar, count, length>>{
      reference_to(weight.stored)};
}
template <class Element, class Scalar, int count, int length>
[[nodiscard]] constexpr auto reference_to(
    const QuantizedTable<QuantizedRows<Element, Scalar, count, length>>& table) {
  return QuantizedTable<QuantizedRowsReference<Element, Scalar, count, length>>{reference_to(table.stored)};
}

/// A compile error: quantized weights have no view, as only training asks for one.
template <class Rows>
constexpr auto view(const QuantizedWeights<Rows>& weight) {
  detail::refuse_quantized<QuantizedWeights<Rows>>();
  return weight;
}
template <class Rows>
constexpr auto view(const QuantizedTable<Rows>& table) {
  detail::refuse_quantized<QuantizedTable<Rows>>();
  return table;
}

namespace detail {

/// W[in, out] for a product; its columns are the stored rows.
template <class Rows>
ATTUNE_INLINE auto quantized_view(const Rows& stored) {
  using Element = typename Rows::Element;
  constexpr auto kScales = Element::kScaled ? kernels::ScalesOf::kColumns : kernels::ScalesOf::kNothing;
  return kernels::QuantizedView<Element, typename Rows::Scalar, Rows::length, Rows::count, 1, Rows::length,
                                kScales>{stored.data(), stored.scale()};
}
template <class Rows>
  requires requires(const Rows& stored) { stored.packed_view(); }  // packed_weights.hpp
ATTUNE_INLINE auto quantized_view(const Rows& stored) { return stored.packed_view(); }

}  // namespace detail

/// y[rows, out] = epilogue(x[rows, in]·W).
template <class X, class Rows, class Y, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply(const X& x, const QuantizedWeights<Rows>& weight, const Y& y,
                            Epilogue epilogue = {}) {
  kernels::gemm(x, detail::quantized_view(weight.stored), y, epilogue);
}
/// dx[rows, in] = epilogue(dy[rows, out]·Wᵀ).
template <class Dy, class Rows, class Dx, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply_transposed(const Dy& dy, const QuantizedWeights<Rows>& weight, const Dx& dx,
                                       Epilogue epilogue = {}) {
  kernels::gemm(dy, detail::quantized_view(weight.stored).transpose(), dx, epilogue);
}
/// dx[rows, n] = dy[rows, out]·Wᵀ, for n rows of W, starting at row `first`.
template <class Dy, class Rows, class Dx>
ATTUNE_INLINE void multiply_transposed_rows(const Dy& dy, const QuantizedWeights<Rows>& weight, int first,
                                            const Dx& dx) {
  kernels::gemm(dy, detail::quantized_view(weight.stored).transpose().template columns<Dx::cols>(first), dx);
}

/// Products with a table T[rows, cols]: its rows have the scales, and act as columns of a weight.
template <class X, class Rows, class Y, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply(const X& x, const QuantizedTable<Rows>& table, const Y& y,
                            Epilogue epilogue = {}) {
  kernels::gemm(x, detail::quantized_view(table.stored).transpose(), y, epilogue);
}
template <class Dy, class Rows, class Dx, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply_transposed(const Dy& dy, const QuantizedTable<Rows>& table, const Dx& dx,
                                       Epilogue epilogue = {}) {
  kernels::gemm(dy, detail::quantized_view(table.stored), dx, epilogue);
}

/// y[1, cols] = a dequantized row of the table.
template <class Rows>
void look_up(const QuantizedTable<Rows>& table, int row, typename Rows::Scalar* y) {
  for (int j = 0; j < Rows::length; ++j) y[j] = table(row, j);
}

}  // namespace ATTUNE_NAMESPACE
