// Core 1 of an RP2040 sleeps in the boot ROM, which takes a vector table, a stack and an entry from the FIFO
// between the cores (RP2040 datasheet, 2.3.1.4, 2.8.2 and 2.13). The Arm cores of an RP2350 start the same
// way, with the reset register at an address of its own. Afterwards the FIFO is free.
#include "../cortex_m/second_core.hpp"

namespace {

volatile std::uint32_t& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
std::uint32_t read(std::uintptr_t address) { return at(address); }
constexpr std::uintptr_t kStatus = 0xD0000050, kWrite = 0xD0000054, kRead = 0xD0000058;
constexpr std::uint32_t kHasData = 1U << 0, kHasRoom = 1U << 1;

void drain() {
  while ((at(kStatus) & kHasData) != 0U) (void)read(kRead);
}
void push(std::uint32_t word) {
  while ((at(kStatus) & kHasRoom) == 0U) {
  }
  at(kWrite) = word;
  asm volatile("dsb\n sev" ::: "memory");
}
std::uint32_t pop() {
  while ((at(kStatus) & kHasData) == 0U) asm volatile("wfe" ::: "memory");
  return at(kRead);
}

// Back into the boot ROM: a debugger, or a reset of core 0 alone, leaves core 1 in its program.
void reset_core_1() {
  constexpr std::uintptr_t kForcedOff = 0x40010004, kSet = 0x2000, kClear = 0x3000;  // PSM FRCE_OFF
  constexpr std::uint32_t kCore1 = 1U << 16;
  at(kForcedOff + kSet) = kCore1;
  while ((at(kForcedOff) & kCore1) == 0U) {
  }
  at(kForcedOff + kClear) = kCore1;
}

}  // namespace

// Core 1 sends each word back. Another word means that it is elsewhere in the sequence, or beyond: all of it
// again.
void release_second_core(const void* vectors) {
  const auto* const table = static_cast<const std::uint32_t*>(vectors);
  const std::uint32_t words[] = {
      0, 0, 1, static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(table)), table[0], table[1]};
  reset_core_1();
  for (int i = 0; i < 6;) {
    if (words[i] == 0U) {
      drain();
      asm volatile("sev" ::: "memory");  // core 1 may be waiting for room
    }
    push(words[i]);
    if (pop() == words[i]) {
      ++i;
    } else {
      reset_core_1();
      i = 0;
    }
  }
}
