// From reset to main on an Armv7-A processor in supervisor mode, as its boot loader or emulator leaves it:
// MMU and caches off, interrupts masked.
#include "../bare_metal/memory_map.hpp"
#include "../bare_metal/program.hpp"

extern "C" {
[[noreturn]] void reset_handler();
[[noreturn]] void start_program();
extern const std::uint32_t exception_vectors[];
}

// The stack first, then the floating-point unit and NEON (coprocessors 10 and 11), then C++.
[[gnu::naked]] void reset_handler() {
  asm volatile(
      "ldr  r0, =stack_top        \n"
      "mov  sp, r0                \n"
      "mrc  p15, 0, r0, c1, c0, 2 \n"  // CPACR
      "orr  r0, r0, #0xF00000     \n"
      "mcr  p15, 0, r0, c1, c0, 2 \n"
      "isb                        \n"
      "mov  r0, #0x40000000       \n"
      "vmsr fpexc, r0             \n"
      "b    start_program         \n"
      ".ltorg                     \n");
}

void start_program() {
  asm volatile("mcr p15, 0, %0, c12, c0, 0" ::"r"(exception_vectors));  // VBAR
  run_program();
}
