// From reset to main on any Cortex-M, without a C runtime.
#include "../bare_metal/memory_map.hpp"
#include "../bare_metal/program.hpp"
#include "floating_point.hpp"
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

// A loader may leave the vector table register pointing at itself. Armv6-M may lack the register.
void point_at_vectors() {
#if __ARM_ARCH_ISA_THUMB >= 2
  volatile std::uint32_t& vtor = *reinterpret_cast<volatile std::uint32_t*>(0xE000ED08);
  vtor = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&kVectors));
#endif
}

}  // namespace

void reset_handler() {
  point_at_vectors();
  enable_floating_point();
  guard_stack(stack_limit);
  // In another file, so that no floating-point instruction moves ahead of the line that allows it.
  run_program();
}
