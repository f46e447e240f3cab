// std::bit_cast for the C++ library of Emscripten 3.1.6, Debian 12's, which is without; its clang has what it
// takes. Included in front of every file by cmake/wasm32-unknown-emscripten.cmake.
#pragma once

#include <bit>
#include <version>

#if !defined(__cpp_lib_bit_cast)
namespace std {
template <class To, class From>
[[nodiscard]] constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
