// Of Arduino's EEPROM library, what the adapter calls: bytes that are written over each other.
#pragma once

#include "memory.hpp"

struct EEPROMClass {
  std::uint8_t read(int at) { return stub::memory[at]; }
  void update(int at, std::uint8_t value) {
    if (stub::memory[at] == value) return;
    stub::memory[at] = value;
    ++stub::calls;
  }
};
inline EEPROMClass EEPROM;
