// A tick of 1 kHz comes while the program computes, and a reset starts the program again and keeps what it
// should. On the host and on Cortex-A, where ticks are simulated, what holds there.
//   ticks         prints the instructions between two ticks to whom ATTUNE_COUNTS counts
// Ends with `N passed, N failed`.
#include "ticks.hpp"

#include "console.hpp"
#include "instructions.hpp"
#include "port.hpp"

namespace {

int passed = 0, failed = 0;

void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}

volatile std::uint32_t calls = 0, seen = 0;
void on_tick() {
  calls = calls + 1;
  seen = port::ticks();
}

std::uint32_t volatile sum = 0;
void compute(std::uint32_t rounds) {
  for (std::uint32_t i = 0; i < rounds; ++i) sum = sum + i;
}

void check_ticks() {
  port::start_ticks(1000, on_tick);
  // An emulator whose time is the machine's may be late by some ticks.
  constexpr std::uint32_t kLate = 10;
  expect(port::ticks() < kLate, "ticks begin at 0");
  for (int wait = 0; wait < 5; ++wait) {
    const std::uint32_t before = port::ticks();
    port::wait_for_tick(before);
    const std::uint32_t least = calls, now = port::ticks(), most = calls;
    expect(now > before && least <= now && now <= most, "a tick is waited for, and handled once");
    expect(seen >= now, "a tick counts before it is handled");
  }

  const std::uint32_t before = port::ticks();
  std::uint32_t rounds = 0;
  if (port::ticks_interrupt()) {
    while (port::ticks() - before < 5 && rounds < 1'000'000'000U) compute(100), rounds += 100;
    expect(port::ticks() - before >= 5, "ticks come while the program computes");
  } else {
    compute(1'000'000);
    expect(port::ticks() == before, "simulated ticks do not come while the program computes");
  }

  // As if the tick had come just before the wait.
  port::wait_for_tick(port::ticks());
  const std::uint32_t came = port::ticks();
  port::wait_for_tick(came - 1);
  expect(port::ticks_interrupt() || port::ticks() == came, "a tick that has come is not waited for");

  port::wait_for_tick(port::ticks());
  port::begin_counting();
  const std::uint32_t counted = port::ticks();
  if (port::ticks_interrupt()) {
    while (port::ticks() == counted) {
    }
  }
  (void)port::end_counting();

  port::start_ticks(100);
  const std::uint32_t unhandled = calls;
  port::wait_for_tick(0);
  expect(port::ticks() >= 1 && port::ticks() < kLate && calls == unhandled,
         "a second start begins anew, here without a handler");
}

}  // namespace

int main() {
  constexpr std::uint32_t kResets = 3;
  static int initialized = 1;
  static int cleared = 0;
  expect(initialized == 1 && cleared == 0, "a program starts with its variables as they were loaded");
  initialized = cleared = 2;

  const std::uint32_t resets = port::reset_count();
  check_ticks();
  if (failed != 0) port::print(passed, " passed, ", failed, " failed\n");
  if (failed != 0) return 1;
  if (resets < kResets) port::reset();
  expect(resets == kResets, "resets are counted");
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}
