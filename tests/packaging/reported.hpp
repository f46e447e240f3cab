// A constexpr memory report for tests/packaging/memory_map to read from the image, without a byte in it: the
// absolute symbol reported_NAME, which promises that the variable NAME has that many bytes.
#pragma once

// At namespace scope. The function only carries the symbol, and the linker drops it.
#define ATTUNE_REPORTED(name, bytes)                                                    \
  [[gnu::used]] static void report_##name() {                                           \
    asm(".global reported_" #name "\n .set reported_" #name ", %c0" ::"i"(int{bytes})); \
  }                                                                                     \
  static_assert(sizeof(name) > 0)
