// From reset to main on a 32-bit RISC-V processor in machine mode, as a chip or an emulator without firmware
// of its own leaves it: interrupts off, physical addresses. Without an A extension, and with or without F.
#include "../bare_metal/memory_map.hpp"
#include "../bare_metal/program.hpp"
#include "hart.hpp"

extern "C" {
[[noreturn]] void reset_handler();
[[noreturn, gnu::used]] void start_program();
void other_hart();
extern const std::uint32_t trap_vectors[];
}

// Harts but the first, unless the program has something for them (second_core.cpp).
[[gnu::naked, gnu::weak]] void other_hart() { asm volatile("1: wfi\n j 1b"); }

// The first instruction of CODE, for every hart. The stack, then the floating-point unit (mstatus.FS,
// rounding to nearest), then C++.
[[gnu::naked, gnu::section(".vectors")]] void reset_handler() {
  asm volatile(
      "csrr t0, mhartid        \n"
      "bnez t0, 1f             \n"
      "la   sp, stack_top      \n"
      "csrw mscratch, sp       \n"
#if defined(__riscv_flen)
      "li   t0, 0x2000         \n"
      "csrs mstatus, t0        \n"
      "csrw fcsr, zero         \n"
#endif
      "j    start_program      \n"
      "1: j other_hart         \n");
}

namespace {

// Physical memory protection, for machine mode as well: entries are locked ("Physical Memory Protection").
// Nothing at null pointers, CODE is never written, RAM never executed, and between them is nothing: a stack
// that outgrows the bottom of RAM faults. Addresses are in units of four bytes; an entry reaches from the
// one before it to its own. In front is the guard of another stack, a power of two, and an end of nothing.
// Devices lie between the null page and CODE.
void protect_memory(const void* guard) {
  constexpr std::uint32_t kRead = 1U, kWrite = 1U << 1, kExecute = 1U << 2, kToHere = 1U << 3,
                          kPowerOfTwo = 3U << 3, kLocked = 1U << 7;
  constexpr std::uint32_t kNothing = kLocked | kToHere;
  constexpr std::uint32_t kNullPage = 0x1000;
  const auto quarter = [](const void* address) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(address)) >> 2;
  };
  asm volatile(
      "csrw pmpaddr0, %0\n csrw pmpaddr1, zero\n csrw pmpaddr2, %1\n csrw pmpaddr3, %2\n csrw pmpaddr4, %3\n"
      "csrw pmpaddr5, %4\n csrw pmpaddr6, %5\n csrw pmpcfg1, %7\n csrw pmpcfg0, %6" ::"r"(
          quarter(guard) | (kStackGuardBytes / 8U - 1U)),
      "r"(kNullPage >> 2), "r"(quarter(code_region_begin)), "r"(quarter(code_region_end)),
      "r"(quarter(ram_region_begin)), "r"(quarter(ram_region_end)),
      "r"((guard != nullptr ? kLocked | kPowerOfTwo : 0U) | kNothing << 16),
      "r"((kNothing | kRead | kExecute) | kNothing << 8 | (kNothing | kRead | kWrite) << 16)
      : "memory");
}

}  // namespace

void set_up_hart(const void* guard) {
  constexpr std::uint32_t kVectored = 1U;
  asm volatile("csrw mtvec, %0" ::"r"(reinterpret_cast<std::uintptr_t>(trap_vectors) | kVectored));
  protect_memory(guard);
}

void start_program() {
  set_up_hart(nullptr);  // below the program's stack is no memory
  run_program();
}
