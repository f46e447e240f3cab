// How the types in which people have numbers hold a matrix: arrays in C, std::array, std::span, Eigen's
// matrices and maps, and what has data(), rows and cols as a Tensor has.
//
// `Storage<Source>` says what is known at compile time, and where the first scalar stands:
//
//   rows, cols               0, n: n scalars without a shape.  0, 0: a size that only run time knows
//   row_stride, col_stride   from one row, and one column, to the next, in scalars
//   kOwns                    whether the numbers live as long as the object
//   first(source)            the address of the first scalar, const where the source is
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// Of what is no matrix.
template <class Source>
struct Storage {};

/// Whether `Source`, which may be const or a reference, holds numbers.
template <class Source>
concept Stored = requires {
  Storage<std::remove_cvref_t<Source>>::kOwns;
};

/// `count` elements one after the other: scalars, or matrices, each below the one before.
template <class Element, std::size_t count>
struct StorageOfArray {
  static constexpr bool kOwns = true;
  static constexpr int rows = 0;
  static constexpr int cols = static_cast<int>(count);
  static constexpr int row_stride = cols;
  static constexpr int col_stride = 1;
  static constexpr auto* first(auto& source) { return std::data(source); }
};
template <class Element, std::size_t count>
  requires(Stored<Element>&& Storage<Element>::kOwns)
struct StorageOfArray<Element, count> {
  using Part = Storage<Element>;
  static constexpr bool kOwns = true;
  static constexpr int rows = static_cast<int>(count) * (Part::rows == 0 ? 1 : Part::rows);
  static constexpr int cols = Part::cols;
  static constexpr int row_stride = Part::row_stride;
  static constexpr int col_stride = Part::col_stride;
  static constexpr auto* first(auto& source) { return Part::first(*std::data(source)); }
};

template <class Element, std::size_t count>
struct Storage<Element[count]> : StorageOfArray<std::remove_const_t<Element>, count> {};
template <class Element, std::size_t count>
struct Storage<std::array<Element, count>> : StorageOfArray<std::remove_const_t<Element>, count> {};
template <class Element, std::size_t count>
struct Storage<std::span<Element, count>>
    : StorageOfArray<std::remove_const_t<Element>, count == std::dynamic_extent ? 0 : count> {
  static constexpr bool kOwns = false;
};

/// Tensors, and what refers to one.
template <class Source>
  requires(requires(Source& source) {
    source.data();
    Source::rows;
    Source::cols;
  })
struct Storage<Source> {
  static constexpr bool kOwns = requires(Source & source) { source.values; };
  static constexpr int rows = Source::rows;
  static constexpr int cols = Source::cols;
  static constexpr int row_stride = cols;
  static constexpr int col_stride = 1;
  static constexpr auto* first(auto& source) { return source.data(); }
};

/// Eigen's. A dimension of a vector has no stride to be wrong.
template <class Source>
  requires(requires(Source& source) {
    source.data();
    Source::RowsAtCompileTime;
    typename Source::PlainObject;
  })
struct Storage<Source> {
  static constexpr bool kOwns = std::is_same_v<Source, typename Source::PlainObject>;
  static constexpr bool kFixed = Source::RowsAtCompileTime > 0 && Source::ColsAtCompileTime > 0;
  static constexpr int rows = kFixed ? int(Source::RowsAtCompileTime) : 0;
  static constexpr int cols = kFixed ? int(Source::ColsAtCompileTime) : 0;
  static constexpr int row_stride =
      Source::IsRowMajor ? int(Source::OuterStrideAtCompileTime) : int(Source::InnerStrideAtCompileTime);
  static constexpr int col_stride =
      Source::IsRowMajor ? int(Source::InnerStrideAtCompileTime) : int(Source::OuterStrideAtCompileTime);
  static constexpr auto* first(auto& source) { return source.data(); }
};

/// Containers.
template <class Source>
  requires(
      requires(Source& source) {
        source.data();
        source.size();
        typename Source::value_type;
      } &&
      !requires { Source::RowsAtCompileTime; })
struct Storage<Source> : StorageOfArray<typename Source::value_type, 0> {};

/// A scalar of `Source`, const where it may not be written.
template <class Source>
using ElementOf = std::remove_pointer_t<decltype(Storage<std::remove_cvref_t<Source>>::first(
    std::declval<std::remove_reference_t<Source>&>()))>;

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
