// Storage of a weight W[in, out], and its products.
//
//   y = x·W,      dx = dy·Wᵀ,      dW += xᵀ·dy
//
// Layers compute these products by the functions below, which are customization points. Storage other than a
// matrix of scalars in memory overloads them (quantized_weights.hpp). The following have a view:
//
//   Tensor                own, [in, out]
//   TransposedTensor      own, [out, in], as PyTorch's nn.Linear.weight
//   Reference             elsewhere, [in, out]
//   TransposedReference   elsewhere, [out, in]
//   Untrained             nothing: a gradient that is not computed
//
// weights/low_rank.hpp adds a product of low rank to a constant in any storage.
//
//   Layer::ParametersOf<TransposedReference, Reference>   // PyTorch's tensors, read in place from flash
#pragma once

#include <attune/core/parameters.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/kernels/ops/softmax.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE {

/// y[rows, out] = epilogue(x[rows, in]·W).
template <class X, class Weight, class Y, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply(const X& x, const Weight& weight, const Y& y, Epilogue epilogue = {}) {
  kernels::gemm(x, view(weight), y, epilogue);
}
/// dx[rows, in] = epilogue(dy[rows, out]·Wᵀ).
template <class Dy, class Weight, class Dx, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply_transposed(const Dy& dy, const Weight& weight, const Dx& dx,
                                       Epilogue epilogue = {}) {
  kernels::gemm(dy, view(weight).transpose(), dx, epilogue);
}

/// dx[rows, n] = dy[rows, out]·Wᵀ, for n rows of W, starting at row `first`.
template <class Dy, class Weight, class Dx>
ATTUNE_INLINE void multiply_transposed_rows(const Dy& dy, const Weight& weight, int first, const Dx& dx) {
  kernels::gemm(dy, view(weight).template rows_at<Dx::cols>(first).transpose(), dx);
}

/// y[1, cols] = a row of a table.
template <class Table, class Scalar>
ATTUNE_INLINE void look_up(const Table& table, int row, Scalar* y) {
  const auto* values = table.data() + row * Table::cols;
  for (int j = 0; j < Table::cols; ++j) y[j] = values[j];
}
namespace detail {

/// The numbers of a set's weight or bias; nullptr if it has none.
template <class Scalar>
constexpr const Scalar* numbers_of_weight(const auto&) {
  return nullptr;
}
template <class Scalar, class Set>
  requires requires(const Set& set) { set.weight; }
constexpr const Scalar* numbers_of_weight(const Set& set) { return set.weight.data(); }
template <class Scalar>
constexpr const Scalar* numbers_of_bias(const auto&) {
  return nullptr;
}
template <class Scalar, class Set>
  requires requires(const Set& set) { set.bias; }
constexpr const Scalar* numbers_of_bias(const Set& set) { return set.bias.data(); }

}  // namespace detail

/// y[rows, cols] += a table.
template <class Table, class Scalar>
ATTUNE_INLINE void add_table(const Table& table, Scalar* y) {
  if constexpr (std::is_same_v<decltype(table.data()), const Scalar*>) {
    kernels::add_to(Table::rows * Table::cols, table.data(), y);
  } else {  // in 16 bits, or the same numbers for each lane
    for (int i = 0; i < Table::rows * Table::cols; ++i) y[i] += table.data()[i];
  }
}

/// gradient[rows, cols] += a·b. Here and below, `gradient` is a view of a tensor's gradient, and `terms`
/// computes the sums over the terms that count.
template <class A, class B, class Scalar, int kRows, int kCols, int kRowStride, int kColStride, Major kMajor,
          class Terms = kernels::DenseTerms>
ATTUNE_INLINE void add_product(
    const A& a, const B& b, const MatrixView<Scalar, kRows, kCols, kRowStride, kColStride, kMajor>& gradient,
    const Terms& terms = {}) {
  if constexpr (kMajor == Major::kRow) {
    terms.gemm(a, b, gradient, kernels::Accumulate{});
  } else {
    terms.gemm(b.transpose(), a.transpose(), gradient.transpose(), kernels::Accumulate{});
  }
}
/// gradient[1, cols] += Σ_rows dy[rows, cols].
template <class Gradient, class Scalar>
ATTUNE_INLINE void add_column_sums(const Gradient& dy,
                                   const MatrixView<Scalar, 1, Gradient::cols>& gradient) {
  kernels::add_column_sums<Gradient::rows, Gradient::cols, Gradient::row_stride>(dy.data, gradient.data,
                                                                                 used_rows(dy));
}

/// Adds nothing: this parameter is not trained.
template <class A, class B, class Scalar, int rows, int cols, class Place, class Terms = kernels::DenseTerms>
ATTUNE_INLINE void add_product(const A&, const B&, detail::UntrainedIn<Scalar, rows, cols, Place>,
                               const Terms& = {}) {}
template <class Gradient, class Scalar, int cols, class Place>
ATTUNE_INLINE void add_column_sums(const Gradient&, detail::UntrainedIn<Scalar, 1, cols, Place>) {}

/// A constant weight in a layer whose scalars are lanes (kernels/simd/lanes.hpp): `Base` of plain numbers.
/// Tables have no products, so they are tensors of lanes.
template <class Lanes, class Base>
struct WeightOfLanes {
  using Scalar = Lanes;
  static constexpr int rows = Base::rows;
  static constexpr int cols = Base::cols;
  Base base;
};
namespace detail {

template <class Lanes, class Base>
struct TableForm<WeightOfLanes<Lanes, Base>> {
  using type = Tensor<Lanes, Base::rows, Base::cols>;
};

}  // namespace detail

template <class X, class Lanes, class Base, class Y, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply(const X& x, const WeightOfLanes<Lanes, Base>& weight, const Y& y,
                            Epilogue epilogue = {}) {
  multiply(x, weight.base, y, epilogue);
}
template <class Dy, class Lanes, class Base, class Dx, class Epilogue = kernels::Assign>
ATTUNE_INLINE void multiply_transposed(const Dy& dy, const WeightOfLanes<Lanes, Base>& weight, const Dx& dx,
                                       Epilogue epilogue = {}) {
  multiply_transposed(dy, weight.base, dx, epilogue);
}
/// dx[rows, n] = dy[rows, out]·Wᵀ, for n rows of W, starting at row `first`.
template <class Dy, class Lanes, class Base, class Dx>
ATTUNE_INLINE void multiply_transposed_rows(const Dy& dy, const WeightOfLanes<Lanes, Base>& weight, int first,
                                            const Dx& dx) {
  multiply_transposed_rows(dy, weight.base, first, dx);
}

namespace detail {

/// An element of a weight in any storage.
template <class Weight>
constexpr auto element_of(const Weight& weight, int row, int col) {
  return view(weight)(row, col);
}
template <class Weight>
  requires requires(const Weight& weight) { weight(0, 0); }
constexpr auto element_of(const Weight& weight, int row, int col) { return weight(row, col); }

/// Two tensors of different shapes are a compile error: one for all tensors of two sets.
template <bool kSame>
constexpr void require_same_shape() {
  static_assert(Holds<kSame>,
                "attune: a tensor has different shapes in these sets of parameters; both must belong to one "
                "layer or model");
}
template <class From, class To>
constexpr void require_same_shape(const From&, const To&) {
  require_same_shape<From::rows == To::rows && From::cols == To::cols>();
}

template <class From, class To>
constexpr void copy_elements(const From& from, To& to) {
  require_same_shape(from, to);
  for (int i = 0; i < To::rows; ++i) {
    for (int j = 0; j < To::cols; ++j) to(i, j) = element_of(from, i, j);
  }
}

}  // namespace detail

/// Copies a set in any storage, such as flash, to another set of the same layer or model. A tensor of another
/// shape is a compile error.
template <class From, class To>
constexpr void copy_parameters(const From& from, To& to) {
  for_each_tensor(
      [](const TensorPath&, auto& target, const auto& source) { detail::copy_elements(source, target); }, to,
      from);
}

}  // namespace ATTUNE_NAMESPACE
