// SysTick, which every Cortex-M of Armv7-M and later has, and most of Armv6-M (Arm DDI 0403, B3.3). The nRF51
// of a real micro:bit has none, only its emulation.
#include "../ticks.hpp"

#include "../port.hpp"

namespace {

volatile std::uint32_t& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

constexpr std::uintptr_t kControl = 0xE000E010, kReload = 0xE000E014, kValue = 0xE000E018;
constexpr std::uint32_t kEnable = 1U, kInterrupt = 1U << 1, kProcessorClock = 1U << 2;
constexpr std::uint32_t kLongest = 1U << 24;
constexpr std::uintptr_t kInterruptState = 0xE000ED04;
constexpr std::uint32_t kTickPending = 1U << 26, kClearTick = 1U << 25;

volatile std::uint32_t count = 0;
void (*handler)() = nullptr;

// Clocks of the processor: of a tick, and of all ticks since the first start_ticks.
std::uint32_t period = 0;
volatile std::uint64_t elapsed = 0;

}  // namespace

extern "C" void systick_handler() {
  count = count + 1;
  elapsed = elapsed + period;
  if (handler != nullptr) handler();
}

namespace port {

void start_ticks(std::uint32_t hertz, void (*on_tick)()) {
  if (period != 0U) elapsed = elapsed + (period - at(kValue));
  at(kControl) = 0;
  at(kInterruptState) = kClearTick;
  count = 0;
  handler = on_tick;
  const std::uint32_t clocks = hertz != 0U ? ATTUNE_CLOCK_HERTZ / hertz : kLongest;
  period = clocks < 2U ? 2U : clocks < kLongest ? clocks : kLongest;
  at(kReload) = period - 1U;
  at(kValue) = 0;
  at(kControl) = kProcessorClock | kInterrupt | kEnable;
}

std::uint32_t ticks() { return count; }

// With interrupts masked, a tick that comes between the comparison and the wfi still wakes the processor.
void wait_for_tick(std::uint32_t seen) {
  while (count == seen) {
    asm volatile("cpsid i" ::: "memory");
    if (count == seen) asm volatile("dsb\n wfi" ::: "memory");
    asm volatile("cpsie i\n isb" ::: "memory");
  }
}

bool ticks_interrupt() { return true; }

// For a board that has no other clock: the first call starts the ticks, if the program has not.
[[gnu::weak]] std::uint64_t microseconds() {
  if (period == 0U) start_ticks(1000);
  std::uint32_t before, rest;
  std::uint64_t whole;
  do {  // again if a tick came in between
    before = count;
    rest = at(kValue);
    whole = elapsed;
    if ((at(kInterruptState) & kTickPending) != 0U) {  // and is not counted here: its interrupt waits
      rest = at(kValue);
      whole += period;
    }
  } while (before != count);
  return (whole + (period - rest)) / (ATTUNE_CLOCK_HERTZ / 1'000'000U);
}

}  // namespace port
