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

#if defined(__riscv)
  // Sleeps until the other one wakes it, or an interrupt comes.
  static void relax();
  static void wake();
#else
  // The event register remembers a sev, so a store between a look and the wfe is not slept through.
  [[gnu::always_inline]] static void relax() { asm volatile("wfe" ::: "memory"); }
  [[gnu::always_inline]] static void wake() { asm volatile("dsb\n sev" ::: "memory"); }
#endif

#if !defined(__ARM_ARCH_6M__)  // a Pico's emulator tells the time by itself
#if defined(__riscv)
#define ATTUNE_MARK(hint) ".2byte " hint "\n"
#define ATTUNE_MARK_LOAD(address) "lbu %0, 0(" address ")\n"
  static constexpr unsigned kWaits = 0x000e, kWaited = 0x0012, kPublishes = 0x0016;  // c.slli of x0
#else
#define ATTUNE_MARK(hint) ".inst.n " hint "\n"
#define ATTUNE_MARK_LOAD(address) "ldrb %0, [" address "]\n"
  static constexpr unsigned kWaits = 0xbf80, kWaited = 0xbf90, kPublishes = 0xbfa0;
#endif

  // Marks for instruction_counter.c, which has a clock for each core: hints, each with two loads whose
  // addresses the emulator sees, of the flag and of the number's own byte in the first KiB of code. Leave
  // them out of a port for silicon.
  [[gnu::always_inline]] static void trace_wait(const void* flag, std::uint32_t number) {
    mark<kWaits>(flag, number);
  }
  [[gnu::always_inline]] static void trace_waited() {
    asm volatile(ATTUNE_MARK("%c0")::"i"(kWaited) : "memory");
  }
  [[gnu::always_inline]] static void trace_publish(const void* flag, std::uint32_t number) {
    mark<kPublishes>(flag, number);
  }

 private:
  template <unsigned hint>
  [[gnu::always_inline]] static void mark(const void* flag, std::uint32_t number) {
    std::uint32_t unused;
    asm volatile(ATTUNE_MARK("%c3") ATTUNE_MARK_LOAD("%1") ATTUNE_MARK_LOAD("%2")
                 : "=&r"(unused)
                 : "r"(flag), "r"(vectors_begin + number % 1024U), "i"(hint)
                 : "memory");
  }
#undef ATTUNE_MARK
#undef ATTUNE_MARK_LOAD
#endif
};

}  // namespace port
