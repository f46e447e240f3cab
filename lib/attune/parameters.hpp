// Sets of tensors: parameters, and the gradients and moments that have the same type, visited tensor by
// tensor, by name.
//
// A set is a plain struct with a static `visit(visitor, path, sets…)` that calls `visitor(path, tensor of
// each set…)` for each of its tensors, always in the same order.
#pragma once

#include <cstdint>

#include <attune/tensor.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The name of a tensor within its set, innermost part first: {"weight", of "query"}. Lives on the stack of
/// the visit.
struct TensorPath {
  const char* name = nullptr;
  const TensorPath* parent = nullptr;
};

/// Calls visitor(path, tensor of each set…) for every tensor of sets of one type.
template <class Visitor, class Set, class... Sets>
constexpr void for_each_tensor(const Visitor& visitor, Set& set, Sets&... sets) {
  std::remove_const_t<Set>::visit(visitor, static_cast<const TensorPath*>(nullptr), set, sets...);
}

/// How many scalars the tensors of a set hold. A set has nothing else: its size in bytes is this times a
/// scalar's.
template <class Set>
[[nodiscard]] constexpr int count_scalars(const Set& set) {
  int count = 0;
  for_each_tensor([&count](const TensorPath&, const auto& tensor) { count += tensor.size; }, set);
  return count;
}

template <class Set>
constexpr void set_zero(Set& set) {
  for_each_tensor([](const TensorPath&, auto& tensor) { tensor.set_zero(); }, set);
}

/// FNV-1a over the bits of every scalar: equal on two targets when, and (but for 1 in 2³²) only when, all
/// bits are.
template <class Set>
[[nodiscard]] std::uint32_t hash(const Set& set) {
  std::uint32_t state = 2166136261u;
  for_each_tensor(
      [&state](const TensorPath&, const auto& tensor) {
        using Scalar = typename std::remove_cvref_t<decltype(tensor)>::Scalar;
        using Bits = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;
        for (const Scalar value : tensor.values) {
          const Bits bits = std::bit_cast<Bits>(value);
          for (int shift = 0; shift < static_cast<int>(sizeof(Scalar) * 8); shift += 8) {
            state = (state ^ (static_cast<std::uint32_t>(bits >> shift) & 0xFFu)) * 16777619u;
          }
        }
      },
      set);
  return state;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
