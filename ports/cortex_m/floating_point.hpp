// The floating-point unit of the core that calls, which is off after reset.
#pragma once

#include <cstdint>

// Coprocessors 10 and 11: the floating-point unit and Helium.
[[gnu::always_inline]] inline void enable_floating_point() {
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
  volatile std::uint32_t& cpacr = *reinterpret_cast<volatile std::uint32_t*>(0xE000ED88);
  cpacr = cpacr | (0xFU << 20);
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
