// What the library uses of <algorithm>, which is slow to compile (tests/packaging/rooms).
//
// smaller() and larger() are std::min and std::max: cores of Arduino have macros of those names.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The smaller of two values; the first if neither is smaller.
template <class T>
[[nodiscard]] constexpr const T& smaller(const T& a, const T& b) {
  return b < a ? b : a;
}
/// The larger of two values; the first if neither is larger.
template <class T>
[[nodiscard]] constexpr const T& larger(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T>
[[nodiscard]] constexpr T smallest(std::initializer_list<T> values) {
  T found = *values.begin();
  for (const T& value : values) found = smaller(found, value);
  return found;
}
template <class T>
[[nodiscard]] constexpr T largest(std::initializer_list<T> values) {
  T found = *values.begin();
  for (const T& value : values) found = larger(found, value);
  return found;
}
template <class T>
[[nodiscard]] constexpr T clamp(T value, T least, T most) {
  return value < least ? least : most < value ? most : value;
}

/// Copies `count` elements. `from` and `to` may overlap, at run time.
template <class T, class Count>
ATTUNE_INLINE constexpr void copy_n(const T* from, Count count, T* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (std::is_constant_evaluated()) {
    for (Count i = 0; i < count; ++i) to[i] = from[i];
  } else {
    std::memmove(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
}
template <class T>
constexpr void fill_n(T* to, int count, std::type_identity_t<T> value) {
  for (int i = 0; i < count; ++i) to[i] = value;
}
/// Whether any value has a property.
constexpr bool any_of(const auto& values, const auto& holds) {
  for (const auto& value : values) {
    if (holds(value)) return true;
  }
  return false;
}

// In a heap no element comes before its parent, so the first comes before all others. Moves an element down
// to its place.
template <class T, class Before>
constexpr void sift_down(T* heap, int size, int at, const Before& before) {
  for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && before(heap[child + 1], heap[child])) ++child;
    if (!before(heap[child], heap[at])) return;
    std::swap(heap[at], heap[child]);
    at = child;
  }
}
template <class T, class Before>
constexpr void make_heap(T* values, int count, const Before& before) {
  for (int at = count / 2; at-- > 0;) sift_down(values, count, at, before);
}
/// Sorts values in place, those first that come before the others; equal values in any order.
template <class T, class Before>
constexpr void sort(T* values, int count, const Before& before) {
  const auto after = [&](const T& a, const T& b) { return before(b, a); };
  make_heap(values, count, after);
  for (int end = count - 1; end > 0; --end) {
    std::swap(values[0], values[end]);
    sift_down(values, end, 0, after);
  }
}
/// The k-th largest of `count` values. `heap` has room for k.
template <class T>
constexpr T kth_largest(int k, int count, const T* values, T* heap) {
  const auto less = [](const T& a, const T& b) { return a < b; };
  for (int i = 0; i < k; ++i) heap[i] = values[i];
  make_heap(heap, k, less);
  for (int i = k; i < count; ++i) {
    if (!(heap[0] < values[i])) continue;
    heap[0] = values[i];
    sift_down(heap, k, 0, less);
  }
  return heap[0];
}

}  // namespace ATTUNE_NAMESPACE::detail

namespace ATTUNE_NAMESPACE::kernels {
using attune::detail::clamp;
using attune::detail::copy_n;
using attune::detail::fill_n;
using attune::detail::larger;
using attune::detail::largest;
using attune::detail::smaller;
}  // namespace ATTUNE_NAMESPACE::kernels
