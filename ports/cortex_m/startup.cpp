// From reset to main on any Cortex-M, without a C runtime.
#include "../port.hpp"
#include "memory_map.hpp"

// C++ forbids calling main by its name.
extern "C" int program_main() asm("main");

extern "C" {

[[noreturn]] void reset_handler();
void fault_handler();

// Statics with destructors register them here; the program ends by stopping the machine, so they never run.
void* __dso_handle = nullptr;
int __aeabi_atexit(void*, void (*)(void*), void*) { return 0; }
}

namespace {

using Handler = void (*)();

struct VectorTable {
  std::uint32_t* initial_stack;
  Handler reset;
  Handler exceptions[14];  // NMI to SysTick. The ports use no interrupts: whatever comes is a fault.
};

[[gnu::section(".vectors"), gnu::used]] alignas(128) constinit const VectorTable kVectors{
    stack_top,
    reset_handler,
    {fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
     fault_handler}};

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

// Apart from the reset handler, so that no floating-point instruction moves ahead of the line that allows it.
[[noreturn, gnu::noinline]] void start() {
  const std::uint32_t* source = data_load;
  for (std::uint32_t* word = data_begin; word != data_end; ++word) *word = *source++;
  for (std::uint32_t* word = bss_begin; word != bss_end; ++word) *word = 0;
  port::paint_stack();
  for (const auto* initialise = init_array_begin; initialise != init_array_end; ++initialise) (*initialise)();
  port::exit(program_main());
}

}  // namespace

void reset_handler() {
  point_at_vectors();
  enable_floating_point();
  start();
}
