// The machine timer of a CLINT, as in QEMU's virt and chips of SiFive: board.conf's clock is the rate at
// which mtime counts.
#include "../ticks.hpp"

namespace {

constexpr std::uintptr_t kClint = 0x02000000, kCompare = kClint + 0x4000, kTime = kClint + 0xBFF8;
constexpr std::uint32_t kTimerInterrupt = 1U << 7;  // in mie
constexpr std::uint32_t kInterrupts = 1U << 3;      // in mstatus

volatile std::uint32_t& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}

std::uint64_t now() {
  std::uint32_t high, low;
  do {
    high = at(kTime + 4);
    low = at(kTime);
  } while (high != at(kTime + 4));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

// The larger half first goes as far away as it can, so that no half-written time comes.
void interrupt_at(std::uint64_t time) {
  at(kCompare + 4) = ~0U;
  at(kCompare) = static_cast<std::uint32_t>(time);
  at(kCompare + 4) = static_cast<std::uint32_t>(time >> 32);
}

volatile std::uint32_t count = 0;
void (*handler)() = nullptr;
std::uint32_t period = 0;
std::uint64_t next = 0;

}  // namespace

extern "C" [[gnu::interrupt("machine")]] void timer_interrupt() {
  next += period;
  interrupt_at(next);
  count = count + 1;
  if (handler != nullptr) handler();
}

namespace port {

void start_ticks(std::uint32_t hertz, void (*on_tick)()) {
  asm volatile("csrc mie, %0" ::"r"(kTimerInterrupt) : "memory");
  count = 0;
  handler = on_tick;
  period = hertz != 0U && hertz < ATTUNE_CLOCK_HERTZ ? ATTUNE_CLOCK_HERTZ / hertz : 1U;
  next = now() + period;
  interrupt_at(next);
  asm volatile("csrs mie, %0\n csrs mstatus, %1" ::"r"(kTimerInterrupt), "r"(kInterrupts) : "memory");
}

std::uint32_t ticks() { return count; }

// With interrupts masked, a tick that comes between the comparison and the wfi still wakes the processor.
void wait_for_tick(std::uint32_t seen) {
  while (count == seen) {
    asm volatile("csrc mstatus, %0" ::"r"(kInterrupts) : "memory");
    if (count == seen) asm volatile("wfi" ::: "memory");
    asm volatile("csrs mstatus, %0" ::"r"(kInterrupts) : "memory");
  }
}

bool ticks_interrupt() { return true; }

}  // namespace port
