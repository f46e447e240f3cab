// The part of ESP-IDF's FreeRTOS that the package's example names: StackType_t is a byte.
#pragma once

#include <cstdint>

using StackType_t = std::uint8_t;
struct StaticTask_t {
  void* members[20];
};
