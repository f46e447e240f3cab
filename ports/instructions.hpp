// How many instructions a piece of a program takes:
//
//   port::begin_counting();
//   work();
//   const std::uint64_t instructions = port::end_counting();  // 0 where the program cannot tell
//
// On a board these are two hints that do nothing on a processor, and who emulates it counts between them
// (instruction_counter.c): the program learns nothing, ports/run does. On the host the kernel counts what the
// calling thread executes in user space, where it permits that. 64-bit Arm has both.
#pragma once

#include <cstdint>

namespace port {

#if defined(__thumb__)
[[gnu::always_inline]] inline void begin_counting() { asm volatile(".inst.n 0xbf60" ::: "memory"); }
[[gnu::always_inline]] inline std::uint64_t end_counting() {
  asm volatile(".inst.n 0xbf70" ::: "memory");
  return 0;
}
#elif defined(__riscv)
[[gnu::always_inline]] inline void begin_counting() { asm volatile(".2byte 0x0006" ::: "memory"); }
[[gnu::always_inline]] inline std::uint64_t end_counting() {
  asm volatile(".2byte 0x000a" ::: "memory");
  return 0;
}
#elif defined(__xtensa__)
inline void begin_counting() {}
inline std::uint64_t end_counting() { return 0; }
#elif defined(__aarch64__)
void begin_kernel_counter();
std::uint64_t end_kernel_counter();
[[gnu::always_inline]] inline void begin_counting() {
  begin_kernel_counter();
  asm volatile("hint #112" ::: "memory");
}
[[gnu::always_inline]] inline std::uint64_t end_counting() {
  asm volatile("hint #116" ::: "memory");
  return end_kernel_counter();
}
#else
void begin_counting();
std::uint64_t end_counting();
#endif

}  // namespace port
