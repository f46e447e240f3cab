#include "../bare_metal/reset_count.hpp"
#include "../ticks.hpp"

// Power State Coordination Interface, SYSTEM_RESET (Arm DEN 0022), by the call that QEMU's virt takes.
void port::reset() {
  count_reset();
  register std::uint32_t function asm("r0") = 0x84000009U;
  asm volatile("dsb\n .arch_extension virt\n hvc #0" ::"r"(function) : "memory");
  for (;;) asm volatile("wfi");
}
