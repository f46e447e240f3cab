// The second core of a board with `cores=2` in its board.conf: how it starts, waits and wakes. An
// attune::TwoCores<port::SecondCore> is the crew of both.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" const unsigned char vectors_begin[];  // of sections.ld

namespace port {

struct SecondCore {
  static constexpr std::size_t kFlagBytes = 8;  // RAM is not cached here

  /// Starts it, once: its own stack with its limit, its floating-point unit, then entry(), which does not
  /// return.
  static void start(void (*entry)());
  /// Bytes of its stack that were ever used.
  static std::size_t stack_high_water();

  // The event register remembers a sev, so a store between a look and the wfe is not slept through.
  [[gnu::always_inline]] static void relax() { asm volatile("wfe" ::: "memory"); }
  [[gnu::always_inline]] static void wake() { asm volatile("dsb\n sev" ::: "memory"); }

  // Marks for instruction_counter.c, which has a clock for each core: hints, each with two loads whose
  // addresses the emulator sees, of the flag and of the number's own byte in the first KiB of code. Leave
  // them out of a port for silicon.
  [[gnu::always_inline]] static void trace_wait(const void* flag, std::uint32_t number) {
    mark<0xbf80>(flag, number);
  }
  [[gnu::always_inline]] static void trace_waited() { asm volatile(".inst.n 0xbf90" ::: "memory"); }
  [[gnu::always_inline]] static void trace_publish(const void* flag, std::uint32_t number) {
    mark<0xbfa0>(flag, number);
  }

 private:
  template <unsigned hint>
  [[gnu::always_inline]] static void mark(const void* flag, std::uint32_t number) {
    std::uint32_t unused;
    asm volatile(".inst.n %c3\n ldrb %0, [%1]\n ldrb %0, [%2]"
                 : "=&r"(unused)
                 : "r"(flag), "r"(vectors_begin + number % 1024U), "i"(hint)
                 : "memory");
  }
};

}  // namespace port
