// Core 1 of an SSE-200 waits after reset. CPUWAIT lets it go, with the vector table that INITSVTOR1 names
// (Arm 101104, system control register block, secure).
#include "../cortex_m/second_core.hpp"

void release_second_core(const void* vectors) {
  const auto control = [](std::uintptr_t offset) -> volatile std::uint32_t& {
    return *reinterpret_cast<volatile std::uint32_t*>(0x50021000U + offset);
  };
  constexpr std::uintptr_t kInitVtor1 = 0x114, kCpuWait = 0x118;
  control(kInitVtor1) = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(vectors));
  asm volatile("dsb" ::: "memory");
  control(kCpuWait) = control(kCpuWait) & ~2U;
}
