// Sets of tensors from one flat array, and into one: all scalars of all tensors, in the order of their visit
// (core/parameters.hpp), each tensor as it is stored.
//
//   constexpr auto parameters = attune::from_flat<Model::Parameters>(kTrained);     // a copy, in flash
//   constexpr auto references = attune::from_flat<Model::ParametersOf<attune::Reference>>(kTrained);  // none
//   const attune::Status status = attune::read_flat(std::span(floats, count), parameters);
//
// from_flat of tensors is evaluated scalar by scalar: for a tensor of more than 262,144 GCC wants
// -fconstexpr-loop-limit, for a million clang wants -fconstexpr-steps. References cost one evaluation a
// tensor.
#pragma once

#include <cstddef>
#include <iterator>
#include <ranges>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

template <class Element, class Tensor>
constexpr void check_flat_scalar() {
  static_assert(std::is_same_v<std::remove_const_t<Element>, typename std::remove_cvref_t<Tensor>::Scalar>,
                "attune: the flat array has another scalar type than the parameters");
}

// A reference to a tensor then refers into the array.
template <class Element, class Set>
constexpr void take_flat(Element* from, Set& set) {
  for_each_tensor(
      [&from](const TensorPath&, auto& tensor) {
        check_flat_scalar<Element, decltype(tensor)>();
        if constexpr (requires { tensor.first = from; }) {
          tensor.first = from;
          from += tensor.size;
        } else {
          for (auto& value : tensor.values) value = *from++;
        }
      },
      set);
}

template <class Set>
inline constexpr int kScalarsOf = count_scalars(Set{});

// Whether a set refers to its numbers, and so to its source.
template <class Set>
constexpr bool refers() {
  bool any = false;
  Set set{};
  for_each_tensor([&any](const TensorPath&, auto& tensor) { any |= requires { tensor.first; }; }, set);
  return any;
}

template <class Source, class Set>
constexpr void check_lifetime() {
  static_assert(std::is_lvalue_reference_v<Source> || std::ranges::borrowed_range<Source> || !refers<Set>(),
                "attune: these values are gone before the references to them are used; give them a name");
}

}  // namespace detail

/// A set filled from an array, a std::array or a span of static size. A set of References refers to that,
/// which must live as long.
template <class Set, class Source>
  requires detail::Stored<std::remove_cvref_t<Source>>
[[nodiscard]] constexpr Set from_flat(Source&& values) {
  detail::check_lifetime<Source, Set>();
  using From = detail::Storage<std::remove_cvref_t<Source>>;
  constexpr int kCount = From::rows == 0 ? From::cols : From::rows * From::cols;
  static_assert(kCount > 0,
                "attune::from_flat: only run time knows how many values these are; use read_flat");
  static_assert(
      kCount == 0 || kCount == detail::kScalarsOf<Set>,
      "attune::from_flat: the array has another number of values than the parameters; it is of another "
      "model, or of another shape of this one");
  Set set{};
  if constexpr (kCount == detail::kScalarsOf<Set>) detail::take_flat(From::first(values), set);
  return set;
}

/// Fills a set from an array, a span or a container. Status::kInvalidLength, and nothing changes, unless
/// there is a value for each scalar of the set.
template <class Source, class Set>
constexpr Status read_flat(Source&& values, Set& set) {
  detail::check_lifetime<Source, Set>();
  if (std::size(values) != static_cast<std::size_t>(count_scalars(set))) return Status::kInvalidLength;
  detail::take_flat(std::data(values), set);
  return Status::kOk;
}

/// Writes all scalars of a set to an array, a span or a container. Status::kInvalidLength, and nothing is
/// written, unless it has as much room.
template <class Set, class Target>
constexpr Status write_flat(const Set& set, Target&& values) {
  if (std::size(values) != static_cast<std::size_t>(count_scalars(set))) return Status::kInvalidLength;
  auto* to = std::data(values);
  for_each_tensor(
      [&to](const TensorPath&, const auto& tensor) {
        detail::check_flat_scalar<std::remove_pointer_t<decltype(to)>, decltype(tensor)>();
        for (const auto value : tensor.values) *to++ = value;
      },
      set);
  return Status::kOk;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
