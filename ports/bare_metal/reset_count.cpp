#include "reset_count.hpp"

#include "../ticks.hpp"

namespace {

// RAM comes up with anything in it: the number counts where its complement says the same.
struct Resets {
  std::uint32_t count, complement;
};
[[gnu::section(".noinit")]] volatile Resets resets;

}  // namespace

std::uint32_t port::reset_count() {
  const std::uint32_t count = resets.count;
  return resets.complement == ~count ? count : 0U;
}

void count_reset() {
  const std::uint32_t count = port::reset_count() + 1U;
  resets.count = count;
  resets.complement = ~count;
}
