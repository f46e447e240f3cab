// What a fault leaves behind, as text: the stacked registers and the fault status, then exit with
// kFaultExitCode.
#include "../bare_metal/memory_map.hpp"
#include "../console.hpp"
#include "../port.hpp"

extern "C" {

// Enters with the stacked registers in r0. After an overflow there is no stack left to report on, so the
// report starts again at the top; nothing returns to what it overwrites. The main stack is the only one this
// start-up uses.
[[gnu::naked]] void fault_handler() {
  asm volatile(
      ".syntax unified     \n"
      "mov  r0, sp         \n"
      "ldr  r1, =stack_limit + 512 \n"
      "cmp  r0, r1         \n"
      "bhs  1f             \n"
      "ldr  r1, =stack_top \n"
      "mov  sp, r1         \n"
      "1:                  \n"
      "ldr  r1, =report_fault \n"
      "bx   r1             \n"
      ".ltorg              \n");
}

[[noreturn, gnu::used]] void report_fault(const std::uint32_t* stacked) {
  std::uint32_t exception;
  asm volatile("mrs %0, ipsr" : "=r"(exception));
  port::print("\nfault: exception ", exception, " on ", port::name(), '\n');

  constexpr int kStackedWords = 8;
  if (stacked >= stack_limit && stacked + kStackedWords <= stack_top) {
    static constexpr const char* kNames[kStackedWords] = {"r0 ",  "r1 ", "r2 ", "r3 ",
                                                          "r12 ", "lr ", "pc ", "xpsr "};
    for (int i = 0; i < kStackedWords; ++i) {
      port::print("  ", kNames[i], port::hex8(stacked[i]), i % 4 == 3 ? "\n" : "");
    }
  } else {
    port::print("  stack overflow: sp ",
                port::hex8(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stacked))),
                " is outside the stack\n");
  }

#if __ARM_ARCH_ISA_THUMB >= 2
  const auto read = [](std::uintptr_t address) {
    return port::hex8(*reinterpret_cast<volatile std::uint32_t*>(address));
  };
  port::print("  cfsr ", read(0xE000ED28), "  hfsr ", read(0xE000ED2C), "  mmfar ", read(0xE000ED34),
              "  bfar ", read(0xE000ED38), '\n');
#endif
  port::exit(port::kFaultExitCode);
}
}
