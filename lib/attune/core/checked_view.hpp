// Checked views of run-time data: a buffer and its length, a dynamic std::span, or a container.
//
//   const auto x = attune::checked_view<Model::Input>(std::span(samples, count));
//   if (!x.ok()) return x.status;
//   Model::forward(parameters, x.view, y, scratch);
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <attune/core/ids.hpp>
#include <attune/core/status.hpp>

namespace ATTUNE_NAMESPACE {

/// A view and its status. Unless `status` is kOk, the view is empty.
template <class View>
struct [[nodiscard]] CheckedView {
  View view;  // valid only if ok()
  Status status;
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
};

namespace detail {

template <class Matrix, class Element>
struct ViewOf {
  static constexpr std::size_t kSize = std::size_t{Matrix::rows} * Matrix::cols;
  using type = MatrixView<Element, Matrix::rows, Matrix::cols>;
};
template <std::size_t size>
struct ViewOf<std::array<int, size>, const int> {
  static constexpr std::size_t kSize = size;
  using type = Ids<static_cast<int>(size)>;
};

template <class Matrix>
concept AreIds = requires {
  typename Matrix::value_type;
};

template <class Matrix, class Element>
constexpr auto checked_view(Element* first, std::size_t size) {
  using Viewed = std::conditional_t<AreIds<Matrix>, const Element, Element>;
  using View = typename ViewOf<Matrix, Viewed>::type;
  const bool fits = size == ViewOf<Matrix, Viewed>::kSize;
  return CheckedView<View>{View(fits ? first : static_cast<Viewed*>(nullptr)),
                           fits ? Status::kOk : Status::kInvalidLength};
}

// An Eigen matrix, map or block. This header needs no Eigen.
template <class Source>
concept EigenLike = requires(const Source& source) {
  Source::IsRowMajor;
  Source::IsVectorAtCompileTime;
  source.innerStride();
  source.outerStride();
};

// Whether `source` has Matrix's rows, columns and memory layout. A vector only has to be contiguous.
template <class Matrix, EigenLike Source>
constexpr bool lies_as(const Source& source) {
  if constexpr (Source::IsVectorAtCompileTime) {
    return source.innerStride() == 1;
  } else if constexpr (AreIds<Matrix>) {
    return false;
  } else {
    return source.rows() == Matrix::rows && source.cols() == Matrix::cols && source.innerStride() == 1 &&
           (source.outerStride() == Matrix::cols || Matrix::rows == 1);
  }
}

}  // namespace detail

/// Views contiguous numbers as a `Matrix`: a Tensor, or a layer's Input or Output. A mutable source gives a
/// mutable view. Returns Status::kInvalidLength if the number of elements differs; for an Eigen matrix, also
/// if rows, columns or strides differ.
template <class Matrix, class Source>
[[nodiscard]] constexpr auto checked_view(Source&& source) {
  using Stored = std::remove_cvref_t<Source>;
  static_assert(
      detail::Holds<(std::is_lvalue_reference_v<Source> || std::ranges::enable_borrowed_range<Stored>)>,
      "attune::checked_view: the temporary does not outlive its view; store it in a variable");
  using Element = std::remove_pointer_t<decltype(std::data(source))>;
  static_assert(detail::Holds<std::is_arithmetic_v<Element>>,
                "attune::checked_view: the argument is a range of rows; pass the numbers, "
                "std::span(&rows[0][0], count)");
  const auto size = static_cast<std::size_t>(std::size(source));
  if constexpr (detail::EigenLike<Stored>) {
    static_assert(detail::Holds<(Stored::IsRowMajor || Stored::IsVectorAtCompileTime)>,
                  "attune::checked_view: an Eigen matrix must be row-major; Eigen's default is not");
    if (!detail::lies_as<Matrix>(source)) return detail::checked_view<Matrix>(std::data(source), 0);
  }
  return detail::checked_view<Matrix>(std::data(source), size);
}

}  // namespace ATTUNE_NAMESPACE
