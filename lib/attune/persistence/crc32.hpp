// CRC-32 of IEEE 802.3 (reflected polynomial EDB88320, as in Ethernet, zip and PNG), with a table of 16
// words; on 64-bit processors of 256.
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

inline constexpr int kCrcStep = sizeof(void*) == 8 ? 8 : 4;  // bits of a table's index

struct CrcTable {
  std::uint32_t words[1 << kCrcStep] = {};
  constexpr CrcTable() {
    for (std::uint32_t index = 0; index < 1u << kCrcStep; ++index) {
      std::uint32_t crc = index;
      for (int i = 0; i < kCrcStep; ++i) crc = (crc & 1u) != 0 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
      words[index] = crc;
    }
  }
};
inline constexpr CrcTable kCrcTable;

/// The product of two polynomials modulo the CRC's. The highest bit is the coefficient of x^0.
[[nodiscard]] constexpr std::uint32_t crc_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x8000'0000u) != 0) product ^= b;
    b = (b & 1u) != 0 ? b >> 1 ^ 0xEDB88320u : b >> 1;
  }
  return product;
}
/// A CRC register, not inverted, after `count` zero bytes: register · x^(8 · count).
[[nodiscard]] constexpr std::uint32_t crc_after_zeros(std::uint32_t state, std::size_t count) {
  std::uint32_t power = 0x0080'0000u;  // x^8
  for (; count != 0; count >>= 1) {
    if ((count & 1u) != 0) state = crc_product(state, power);
    power = crc_product(power, power);
  }
  return state;
}

}  // namespace detail

/// The CRC of `count` bytes. For text in slices, `before` is the CRC of all earlier slices. The CRC of no
/// bytes is 0.
template <class Byte>
[[nodiscard]] constexpr std::uint32_t crc32(const Byte* bytes, std::size_t count, std::uint32_t before = 0) {
  static_assert(detail::Holds<(sizeof(Byte) == 1)>,
                "attune::crc32: the pointer must point to bytes or characters");
  std::uint32_t crc = ~before;
  for (std::size_t i = 0; i < count; ++i) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int taken = 0; taken < 8; taken += detail::kCrcStep) {
      crc = crc >> detail::kCrcStep ^ detail::kCrcTable.words[crc % (1u << detail::kCrcStep)];
    }
  }
  return ~crc;
}

}  // namespace ATTUNE_NAMESPACE
