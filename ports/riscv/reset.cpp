#include "../bare_metal/reset_count.hpp"
#include "../ticks.hpp"

// The test device of SiFive, which QEMU's virt has.
void port::reset() {
  count_reset();
  constexpr std::uintptr_t kTestDevice = 0x00100000;
  constexpr std::uint32_t kReset = 0x7777;
  *reinterpret_cast<volatile std::uint32_t*>(kTestDevice) = kReset;
  for (;;) asm volatile("wfi");
}
