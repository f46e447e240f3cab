// Matrices in common types: C arrays, std::array, std::span, Eigen's matrices and maps, and types with
// data(), rows and cols, like Tensor.
//
// `Storage<Source>` has the shape, as far as the compiler knows it, and the first scalar:
//
//   rows, cols               0, n: n scalars without a shape.  0, 0: a size known only at run time
//   row_stride, col_stride   distance between rows, and between columns, in scalars
//   kOwns                    whether the numbers live as long as the object
//   first(source)            the address of the first scalar, const if the source is const
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// A type that is not a matrix.
template <class Source>
struct Storage {};

/// Whether `Source`, which may be const or a reference, holds numbers.
template <class Source>
concept Stored = requires {
  Storage<std::remove_cvref_t<Source>>::kOwns;
};
/// Whether a type owns its numbers: a Tensor, an Eigen matrix, an array.
template <class Source>
concept OwnsStorage = requires {
  requires Storage<std::remove_cvref_t<Source>>::kOwns;
};

/// `count` consecutive elements: scalars, or stacked matrices.
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

/// Tensors, and references to tensors.
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

/// Eigen's matrices and maps. In a vector, the stride of the other dimension does not matter.
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

/// An expression of Eigen, whose numbers are nowhere yet.
template <class Source>
concept EigenExpression = !Stored<Source> && requires {
  Source::RowsAtCompileTime;
  typename Source::PlainObject;
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

/// The scalar of `Source`, const if it is read-only.
template <class Source>
using ElementOf = std::remove_pointer_t<decltype(Storage<std::remove_cvref_t<Source>>::first(
    std::declval<std::remove_reference_t<Source>&>()))>;

}  // namespace ATTUNE_NAMESPACE::detail
