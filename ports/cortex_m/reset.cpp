#include "../bare_metal/reset_count.hpp"
#include "../ticks.hpp"

void port::reset() {
  count_reset();
  constexpr std::uintptr_t kAircr = 0xE000ED0C;
  constexpr std::uint32_t kKey = 0x05FAU << 16, kSystemResetRequest = 1U << 2;
  asm volatile("dsb" ::: "memory");
  *reinterpret_cast<volatile std::uint32_t*>(kAircr) = kKey | kSystemResetRequest;
  for (;;) asm volatile("dsb" ::: "memory");
}
