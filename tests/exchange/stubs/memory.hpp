// What is behind the stubs of flash interfaces: one array, whose programming clears bits in whole units that
// were erased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace stub {

inline constexpr std::uint32_t kSize = 4 * 4096;
inline unsigned char memory[kSize];
inline bool locked = true;
inline bool torn = false;        // a row cannot be read
inline std::uint32_t calls = 0;  // that programmed or erased

/// Nothing stored, as flash comes.
inline void begin() {
  std::memset(memory, 0xFF, kSize);
  locked = true;
  torn = false;
  calls = 0;
}

/// Whether the place was erased, and so could be programmed.
inline bool program(std::size_t at, const void* from, std::size_t bytes, std::size_t unit) {
  if (at % unit != 0 || bytes % unit != 0 || at > kSize || bytes > kSize - at) return false;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[at + i] != 0xFF) return false;
  }
  std::memcpy(memory + at, from, bytes);
  ++calls;
  return true;
}

inline bool erase(std::size_t at, std::size_t bytes, std::size_t page) {
  if (at % page != 0 || bytes % page != 0 || at > kSize || bytes > kSize - at) return false;
  std::memset(memory + at, 0xFF, bytes);
  ++calls;
  return true;
}

/// The place of an address that was cut to 32 bits, as the HAL takes them.
inline std::size_t place_of(std::uint32_t address) {
  return address - static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(memory));
}

}  // namespace stub
