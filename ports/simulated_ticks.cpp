// Ticks of a processor that is infinitely fast: time passes when the program waits.
#include "ticks.hpp"

namespace port {
namespace {
std::uint32_t count = 0;
void (*handler)() = nullptr;
}  // namespace

void start_ticks(std::uint32_t, void (*on_tick)()) {
  count = 0;
  handler = on_tick;
}

std::uint32_t ticks() { return count; }

void wait_for_tick(std::uint32_t seen) {
  if (count != seen) return;
  ++count;
  if (handler != nullptr) handler();
}

bool ticks_interrupt() { return false; }

}  // namespace port
