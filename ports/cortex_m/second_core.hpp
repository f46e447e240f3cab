// The second core of a Cortex-M with two. Each has its own stack, FPU enable, stack limit, vector table, NVIC
// and SysTick.
#pragma once

#include <cstdint>

#include "stack_guard.hpp"

// The second core's stack. A board's own file lets the core go, with its vector table: the top of that stack,
// and the handler to begin with.
inline constexpr int kSecondStackWords = 1024;
// The words at its end that guard_stack keeps free.
#if __ARM_ARCH_ISA_THUMB >= 2
inline constexpr int kSecondStackGuardWords = 0;  // a register of Armv8-M
#else
inline constexpr int kSecondStackGuardWords = kStackGuardBytes / 4;
#endif
extern "C" std::uint32_t second_stack[kSecondStackWords];
void release_second_core(const void* vectors);
