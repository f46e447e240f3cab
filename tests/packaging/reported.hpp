// A constexpr memory report for tests/packaging/memory_map to read from the image, without a byte in it: the
// absolute symbol reported_NAME, which promises that the variable NAME has that many bytes.
#pragma once

// An operand that is a number, without the sign that Arm's immediates have.
#if defined(__riscv)
#define ATTUNE_PLAIN_NUMBER "%0"
#else
#define ATTUNE_PLAIN_NUMBER "%c0"
#endif

// At namespace scope. The function only carries the symbol, and the linker drops it.
#define ATTUNE_REPORTED(name, bytes)                                                                     \
  [[gnu::used]] static void report_##name() {                                                            \
    asm(".global reported_" #name "\n .set reported_" #name ", " ATTUNE_PLAIN_NUMBER ::"i"(int{bytes})); \
  }                                                                                                      \
  static_assert(sizeof(name) > 0)
