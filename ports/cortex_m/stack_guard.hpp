// How a stack overflow is caught. The stack lies at the bottom of RAM, so what grows out of it leaves RAM;
// that alone is a HardFault on every board here. What is below RAM differs from chip to chip, though, so the
// processor guards it where it can:
//   Armv8-M (M33, M55)      the stack limit register
//   Armv7-M (M3, M4, M7)    a region of the memory protection unit, without access, below RAM; it takes no
//   RAM Armv6-M (M0)            nothing but the end of RAM. A Cortex-M0 in silicon may lock up instead of
//   reporting
#pragma once

#include <cstdint>

// As much as a function may leave out below its stack pointer and still be caught by the region. A power of
// two.
inline constexpr std::uint32_t kStackGuardBytes = 4096;

// Guards the end of the stack of the core that calls.
void guard_stack(std::uint32_t* stack_limit);
