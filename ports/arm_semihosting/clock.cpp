// The clock of a processor without one that every board has.
#include "../port.hpp"
#include "semihosting.hpp"

namespace port {

// SYS_ELAPSED counts real time. SYS_CLOCK would not do: in QEMU it is processor time in hundredths of a
// second.
std::uint64_t microseconds() {
  static std::uint32_t ticks_per_second = 0;
  if (ticks_per_second == 0) {
    ticks_per_second =
        static_cast<std::uint32_t>(semihosting::call(semihosting::Operation::kTickFrequency, nullptr));
  }
  std::uint32_t block[2] = {};
  semihosting::call(semihosting::Operation::kElapsed, block);
  const std::uint64_t ticks = (static_cast<std::uint64_t>(block[1]) << 32) | block[0];
  const std::uint32_t ticks_per_microsecond = ticks_per_second / 1'000'000U;
  return ticks_per_microsecond != 0U ? ticks / ticks_per_microsecond : ticks;
}

}  // namespace port
