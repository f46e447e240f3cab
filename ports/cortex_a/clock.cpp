// The generic timer of Armv7-A, which counts on its own and needs no setting up.
#include <cstdint>

#include "../port.hpp"

namespace port {

std::uint64_t microseconds() {
  std::uint32_t ticks_per_second;  // CNTFRQ
  asm("mrc p15, 0, %0, c14, c0, 0" : "=r"(ticks_per_second));
  std::uint64_t ticks;  // CNTVCT
  asm volatile("isb\n mrrc p15, 1, %Q0, %R0, c14" : "=r"(ticks));
  constexpr std::uint32_t kMicroseconds = 1'000'000U;
  return ticks / ticks_per_second * kMicroseconds +
         ticks % ticks_per_second * kMicroseconds / ticks_per_second;
}

}  // namespace port
