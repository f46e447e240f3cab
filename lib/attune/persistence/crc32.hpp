// CRC-32 of IEEE 802.3 (reflected polynomial EDB88320, as in Ethernet, zip and PNG), with a table of 16
// words.
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/kernels/policy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

struct CrcTable {
  std::uint32_t of_nibble[16] = {};
  constexpr CrcTable() {
    for (std::uint32_t nibble = 0; nibble < 16; ++nibble) {
      std::uint32_t crc = nibble;
      for (int bit = 0; bit < 4; ++bit) crc = (crc & 1u) != 0 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
      of_nibble[nibble] = crc;
    }
  }
};
inline constexpr CrcTable kCrcTable;

}  // namespace detail

/// The CRC of `count` bytes. For text in slices, `before` is the CRC of all earlier slices. The CRC of no
/// bytes is 0.
template <class Byte>
[[nodiscard]] constexpr std::uint32_t crc32(const Byte* bytes, std::size_t count, std::uint32_t before = 0) {
  static_assert(sizeof(Byte) == 1, "attune::crc32: the pointer is to bytes, or to characters");
  std::uint32_t crc = ~before;
  for (std::size_t i = 0; i < count; ++i) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int half = 0; half < 2; ++half) crc = crc >> 4 ^ detail::kCrcTable.of_nibble[crc & 15u];
  }
  return ~crc;
}

}  // namespace attune::inline ATTUNE_ARITHMETIC
