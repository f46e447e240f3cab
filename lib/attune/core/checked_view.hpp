// Views of what only run time knows the size of: a buffer and its length, a dynamic std::span, a container.
//
//   const auto x = attune::checked_view<Model::Input>(std::span(samples, count));
//   if (!x.ok()) return x.status;
//   Model::forward(parameters, x.view, y, scratch);
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include <attune/core/ids.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// A view, of nothing when `status` is not kOk.
template <class View>
struct [[nodiscard]] CheckedView {
  View view;
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

template <class Matrix, class Element>
constexpr auto checked_view(Element* first, std::size_t size) {
  using View = typename ViewOf<Matrix, Element>::type;
  const bool fits = size == ViewOf<Matrix, Element>::kSize;
  return CheckedView<View>{View(fits ? first : static_cast<Element*>(nullptr)),
                           fits ? Status::kOk : Status::kInvalidLength};
}

}  // namespace detail

/// Numbers that lie one after the other as a `Matrix`, a Tensor or a layer's Input or Output: a mutable view
/// of a mutable source. Status::kInvalidLength when there are more or fewer than Matrix has.
template <class Matrix, class Source>
[[nodiscard]] constexpr auto checked_view(Source&& source) {
  static_assert(std::is_lvalue_reference_v<Source> || std::ranges::borrowed_range<Source>,
                "attune::checked_view: this is gone before its view is used; give it a name");
  auto* first = std::data(source);
  constexpr bool kIds = requires { typename Matrix::value_type; };
  if constexpr (kIds) {
    return detail::checked_view<Matrix, const int>(first, std::size(source));
  } else {
    return detail::checked_view<Matrix>(first, std::size(source));
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
