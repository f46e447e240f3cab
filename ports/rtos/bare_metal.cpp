// Training in the main program of a Cortex-M without an RTOS, below a control loop in PendSV, which SysTick
// requests once a millisecond. Between SysTick and PendSV there is room for interrupts that must not wait for
// control.
#include "application.hpp"
#include "port.hpp"
#include "ticks.hpp"

namespace {
volatile std::uint32_t& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
}  // namespace

// The rest of SysTick's handler is the port's.
extern "C" void on_tick() {
  constexpr std::uint32_t kPendSv = 1U << 28;
  at(0xE000ED04) = kPendSv;  // ICSR
}

extern "C" void pendsv_handler() { application::control(); }

// The main program; never waits in the middle of a step.
void train_forever() {
  application::begin();
  at(0xE000ED20) = 0xFFU << 16 | 0x40U << 24;  // SHPR3: PendSV the lowest, SysTick above it
  port::start_ticks(1000, on_tick);
  for (;;) {
    const std::uint32_t now = port::ticks();
    if (!application::train()) port::wait_for_tick(now);
  }
}
