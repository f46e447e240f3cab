// Memory reports: the bytes of a model, known at compile time.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// Bytes by purpose.
struct MemoryReport {
  std::size_t parameters = 0;
  std::size_t gradients = 0;
  std::size_t moments = 0;  // the optimizer's memory
  std::size_t tape = 0;     // kept from forward for backward
  std::size_t scratch = 0;  // dead between calls
  std::size_t inputs = 0;   // inputs, targets and outputs that the caller owns
  std::size_t state = 0;    // counters and alignment
  std::size_t cache = 0;    // keys and values of a stream (execution/stream.hpp)

  /// Bytes of the library's object: all except `inputs`.
  [[nodiscard]] constexpr std::size_t object() const {
    return parameters + gradients + moments + tape + scratch + state + cache;
  }
  /// All bytes.
  [[nodiscard]] constexpr std::size_t total() const { return object() + inputs; }
};

/// The way data reaches a trainer.
enum class Feeding {
  kWholeBatch = 0,  // the whole batch in memory
  kOneByOne = 1     // one sequence after the other
};

namespace detail {
/// A report whose parts and `state` have `bytes` in all.
constexpr MemoryReport report_of(std::size_t bytes, MemoryReport parts) {
  parts.state = 0;
  parts.state = bytes - parts.object();
  return parts;
}
template <class T>
inline constexpr std::size_t kBytes = std::is_empty_v<T> ? 0 : sizeof(T);

/// `one` if `first`, else `other`: a reference to a name, the value of an expression.
template <bool first, class One, class Other>
ATTUNE_INLINE constexpr std::conditional_t<first, One, Other> first_if(One&& one, Other&& other) {
  if constexpr (first) {
    return static_cast<One&&>(one);
  } else {
    return static_cast<Other&&>(other);
  }
}

/// The base of objects that others know by their address.
struct NotCopied {
  NotCopied() = default;
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;
};

/// A member that is only there on a condition. Each of an object, with the objects in it, has a number of its
/// own, so that none takes a byte where there is none.
template <int>
struct NoMember {};
template <bool exists, class Member, int number>
using MemberIf = std::conditional_t<exists, Member, NoMember<number>>;
/// The one of two members that exists: `one`, unless it is empty.
template <class One, class Other>
ATTUNE_INLINE constexpr auto& existing(One& one, Other& other) {
  if constexpr (std::is_empty_v<One>) {
    return other;
  } else {
    return one;
  }
}

/// An array that takes no byte if its elements are empty.
template <class Element, int count>
struct Copies {
  Element elements[std::size_t{count}];
  constexpr Element& operator[](int i) { return elements[i]; }
  constexpr const Element& operator[](int i) const { return elements[i]; }
};
template <class Element, int count>
  requires std::is_empty_v<Element>
struct Copies<Element, count> {
  constexpr Element operator[](int) { return {}; }
  constexpr const Element operator[](int) const { return {}; }  // NOLINT: const as the set
};
}  // namespace detail

/// Memory of inference with one model: its parameters (RAM, or flash when const), scratch, one input and one
/// output.
template <class Model>
[[nodiscard]] constexpr MemoryReport inference_memory() {
  return {.parameters = detail::kBytes<typename Model::Parameters>,
          .scratch = detail::kBytes<typename Model::InferenceScratch>,
          .inputs = sizeof(typename Model::Input) + sizeof(typename Model::Output)};
}

}  // namespace ATTUNE_NAMESPACE
