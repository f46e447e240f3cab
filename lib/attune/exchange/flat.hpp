// Converts sets of tensors from and to one flat array: all scalars of all tensors, in the order of visit
// (core/parameters.hpp), each tensor as it is stored.
//
//   constexpr auto parameters = attune::from_flat<Model::Parameters>(kTrained);     // a copy, in flash
//   constexpr auto references = attune::from_flat<Model::ParametersOf<attune::Reference>>(kTrained);  // none
//   const attune::Status status = attune::read_flat(std::span(floats, count), parameters);
//
// The compiler evaluates a copy scalar by scalar. GCC needs -fconstexpr-loop-limit for a tensor of more than
// 262,144 scalars, and clang -fconstexpr-steps for a million. References cost one evaluation per tensor.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Element, class Tensor>
constexpr void check_flat_scalar() {
  static_assert(
      Holds<std::is_same_v<std::remove_const_t<Element>, typename std::remove_cvref_t<Tensor>::Scalar>>,
      "attune: the flat array and the parameters have different scalar types");
}

// References then point into the array.
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

// Whether a set refers to its source for its numbers.
template <class Set>
constexpr bool refers() {
  bool any = false;
  Set set{};
  for_each_tensor(
      [&any](const TensorPath&, auto& tensor) {
        any |= requires { tensor.first; };
      },
      set);
  return any;
}

template <class Source, class Set>
constexpr void check_lifetime() {
  static_assert(Holds<(std::is_lvalue_reference_v<Source> ||
                       std::ranges::enable_borrowed_range<std::remove_cvref_t<Source>> || !refers<Set>())>,
                "attune: the values do not outlive the references to them; store them in a variable");
}

}  // namespace detail

/// A set filled from an array, a std::array or a span of static size. References point into that source,
/// which must live as long.
template <class Set, class Source>
  requires detail::Stored<std::remove_cvref_t<Source>>
[[nodiscard]] constexpr Set from_flat(Source&& values) {
  detail::check_lifetime<Source, Set>();
  using From = detail::Storage<std::remove_cvref_t<Source>>;
  constexpr int kCount = From::rows == 0 ? From::cols : From::rows * From::cols;
  static_assert(detail::Holds<(kCount > 0)>,
                "attune::from_flat: the number of values is known only at run time; use read_flat");
  static_assert(detail::Holds<(kCount == 0 || kCount == detail::kScalarsOf<Set>)>,
                "attune::from_flat: the array and the parameters have different sizes; the array belongs to "
                "another model or shape");
  Set set{};
  if constexpr (kCount == detail::kScalarsOf<Set>) detail::take_flat(From::first(values), set);
  return set;
}

/// Fills a set from an array, a span or a container. Returns Status::kInvalidLength with nothing changed if
/// the number of values differs from the set's.
template <class Source, class Set>
constexpr Status read_flat(Source&& values, Set& set) {
  detail::check_lifetime<Source, Set>();
  if (std::size(values) != static_cast<std::size_t>(count_scalars(set))) return Status::kInvalidLength;
  detail::take_flat(std::data(values), set);
  return Status::kOk;
}

/// Writes all scalars of a set to an array, a span or a container. Returns Status::kInvalidLength with
/// nothing written if the size differs.
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

}  // namespace ATTUNE_NAMESPACE
