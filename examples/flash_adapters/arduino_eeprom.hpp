// Arduino's EEPROM as attune::FlashStore wants it: bytes that need no erasing, so that a page is set to FF
// instead.
//
//   ArduinoEeprom<64, 16> flash;  // the first 1,024 bytes
//
// For a core whose EEPROM is flash that it rewrites a block at a time, a page must be such a block, or a cut
// while one slot is written takes the other with it. Cores with commit() (ESP32, ESP8266, RP2040) rewrite all
// of it at once: that is refused here; give the store a partition or sectors of the flash itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include <EEPROM.h>

#include <attune/core/status.hpp>

template <std::uint32_t page_size, std::uint32_t pages>
class ArduinoEeprom {
  template <class Eeprom>
  static constexpr bool kCommits = requires(Eeprom& eeprom) {
    eeprom.commit();
  };
  static_assert(!kCommits<decltype(EEPROM)>,
                "this core's EEPROM is one block of flash: a power cut can take all of it");

 public:
  static constexpr std::uint32_t kPageSize = page_size, kPages = pages, kProgramUnit = 1;
  static constexpr unsigned char kErased = 0xFF;

  attune::Status read(std::uint32_t at, void* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      static_cast<std::uint8_t*>(to)[i] = EEPROM.read(static_cast<int>(at + i));
    return attune::Status::kOk;
  }
  attune::Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      EEPROM.update(static_cast<int>(at + i), static_cast<const std::uint8_t*>(from)[i]);
    return attune::Status::kOk;
  }
  attune::Status erase(std::uint32_t at) {
    for (std::uint32_t i = 0; i < kPageSize; ++i) EEPROM.update(static_cast<int>(at + i), kErased);
    return attune::Status::kOk;
  }
  attune::Status sync() { return attune::Status::kOk; }
};
