// Fingerprints of models: different heads, epsilon or dropout give different models, even with equal tensors.
// Computed at compile time; equal for all compilers and targets.
//
// Your own layer declares its options, as far as tensors and shapes do not show them:
//   static constexpr std::uint32_t kFingerprint = fingerprint(options…);
// A model of parts combines the fingerprints of its parts.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

inline constexpr std::uint32_t kFnvPrime = 16777619u;
/// FNV-1a (Fowler, Noll and Vo) of the lowest `bytes` bytes of a number, lowest first.
template <class Bits>
constexpr std::uint32_t fnv1a(Bits value, int bytes, std::uint32_t state) {
  for (int i = 0; i < bytes; ++i)
    state = (state ^ (static_cast<std::uint32_t>(value >> 8 * i) & 0xFFu)) * kFnvPrime;
  return state;
}
/// The same of eight bytes, for compilers, which evaluate it thousands of times for a model: zeros at the end
/// are only multiplications.
constexpr std::uint32_t fnv1a(std::uint64_t value, std::uint32_t state) {
  int left = 8;
  for (; value != 0; value >>= 8, --left)
    state = (state ^ static_cast<std::uint32_t>(value & 0xFFu)) * kFnvPrime;
  for (; left > 0; --left) state *= kFnvPrime;
  return state;
}
// A text with a zero behind it.
constexpr std::uint32_t add_to_fingerprint(std::string_view text, std::uint32_t state) {
  for (const char character : text) state = (state ^ static_cast<unsigned char>(character)) * kFnvPrime;
  return state * kFnvPrime;
}
template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
constexpr std::uint32_t add_to_fingerprint(Value value, std::uint32_t state) {
  if constexpr (std::is_floating_point_v<Value>) {
    return fnv1a(std::bit_cast<std::uint64_t>(double{value}), state);
  } else {
    return fnv1a(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), state);
  }
}

// In a list of values: the others count only if `said`. An option at its default leaves the fingerprints of
// versions before it.
struct OnlyIf {
  bool said;
};

}  // namespace detail

/// The fingerprint of numbers, enumerators and texts, in order.
template <class... Values>
[[nodiscard]] constexpr std::uint32_t fingerprint(const Values&... values) {
  std::uint32_t state = 2166136261u;
  bool said = true;
  [[maybe_unused]] const auto add = [&]<class Value>(const Value& each) {
    if constexpr (std::is_same_v<Value, detail::OnlyIf>) {
      said = each.said;
    } else if (said) {
      state = detail::add_to_fingerprint(each, state);
    }
  };
  (add(values), ...);
  return state;
}

/// The fingerprint of a type: its kFingerprint. The library's layers include their name in it. Default: for a
/// layer, the sizes of its Input and Output; otherwise 0. For a model of parts: fingerprint("its name",
/// kFingerprintOf<Part>…). Specialize it for types that you cannot change.
template <class T>
inline constexpr std::uint32_t kFingerprintOf = 0;
template <class T>
  requires(
      !requires { T::kFingerprint; } &&
      requires {
        typename T::Input;
        typename T::Output;
        typename T::Parameters;
      })
inline constexpr std::uint32_t kFingerprintOf<T> =
    fingerprint(sizeof(typename T::Input), sizeof(typename T::Output));
template <class T>
  requires requires { T::kFingerprint; }
inline constexpr std::uint32_t kFingerprintOf<T> = T::kFingerprint;

}  // namespace ATTUNE_NAMESPACE
