// From reset to main on any Cortex-M, without a C runtime.
#include "../bare_metal/memory_map.hpp"
#include "../bare_metal/program.hpp"
#include "stack_guard.hpp"

extern "C" {
[[noreturn]] void reset_handler();
void fault_handler();
void svc_handler();
void pendsv_handler();
void systick_handler();
}

namespace {

using Handler = void (*)();

struct VectorTable {
  std::uint32_t* initial_stack;
  Handler reset;
  Handler faults[9];  // NMI to the last reserved one
  Handler svc;
  Handler debug[2];
  Handler pendsv, systick;
  // Then, if a program has some, external interrupts: section .vectors.interrupts.
};

[[gnu::section(".vectors"), gnu::used]] alignas(128) constinit const VectorTable kVectors{
    stack_top,
    reset_handler,
    {fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler},
    svc_handler,
    {fault_handler, fault_handler},
    pendsv_handler,
    systick_handler};

[[maybe_unused]] volatile std::uint32_t& system_register(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

// A loader may leave the vector table register pointing at itself. Armv6-M may lack the register.
void point_at_vectors() {
#if __ARM_ARCH_ISA_THUMB >= 2
  constexpr std::uintptr_t kVtor = 0xE000ED08;
  system_register(kVtor) = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&kVectors));
#endif
}

// Coprocessors 10 and 11, the floating-point unit and Helium, are off after reset.
void enable_floating_point() {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  constexpr std::uintptr_t kCpacr = 0xE000ED88;
  system_register(kCpacr) = system_register(kCpacr) | (0xFU << 20);
  asm volatile("dsb\n isb" ::: "memory");
#endif
#if defined(__ARM_FEATURE_MVE)
  // FPSCR.LTPSIZE = 4: vector instructions outside a tail-predicated loop act on all lanes.
  std::uint32_t status;
  asm volatile("vmrs %0, fpscr" : "=r"(status));
  status = (status & ~(7U << 16)) | (4U << 16);
  asm volatile("vmsr fpscr, %0" ::"r"(status));
#endif
}

}  // namespace

void reset_handler() {
  point_at_vectors();
  enable_floating_point();
  guard_stack();
  // In another file, so that no floating-point instruction moves ahead of the line that allows it.
  run_program();
}
