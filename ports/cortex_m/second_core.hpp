// The second core of a Cortex-M with two. Each has its own stack, FPU enable, stack limit, vector table, NVIC
// and SysTick.
#pragma once

#include <cstdint>

// The second core's stack. A board's own file lets the core go, with its vector table: the top of that stack,
// and the handler to begin with.
inline constexpr int kSecondStackWords = 1024;
extern "C" std::uint32_t second_stack[kSecondStackWords];
void release_second_core(const void* vectors);
