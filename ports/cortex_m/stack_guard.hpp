// How a stack overflow is caught. The stack lies at the bottom of RAM, so what grows out of it leaves RAM;
// that alone is a HardFault on every board here. What is below RAM differs from chip to chip, though, so the
// processor guards it where it can:
//   Armv8-M (M33, M55)  the stack limit register
//   others              a region of the memory protection unit, without access, below the stack. It takes no
//                       RAM where nothing is below. A Cortex-M0 has no such unit
// A core of Armv6-M in silicon may lock up instead of reporting.
#pragma once

#include <cstdint>

// As much as a function may leave out below its stack pointer and still be caught by the region. A power of
// two, at least 256.
#if __ARM_ARCH_ISA_THUMB >= 2
inline constexpr std::uint32_t kStackGuardBytes = 4096;
#else
inline constexpr std::uint32_t kStackGuardBytes = 256;  // a second core's region is part of its stack
#endif

// Guards the end of the stack of the core that calls.
void guard_stack(std::uint32_t* stack_limit);
