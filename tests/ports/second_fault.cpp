// A firmware whose second core faults: by an undefined instruction, or with ATTUNE_TEST_OVERFLOW by a
// recursion without an end.
#include <second_core.hpp>

namespace {

// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] std::uint32_t recurse(std::uint32_t depth) {
  volatile std::uint32_t frame[50];
  for (volatile std::uint32_t& word : frame) word = depth;
  return depth == 0xFFFFFFFFU ? 0U : recurse(depth + 1) + frame[depth % 50];
}

void fault() {
#if ATTUNE_TEST_OVERFLOW
  (void)recurse(0);
#else
  if (recurse(0xFFFFFFFFU) == 0) __builtin_trap();
#endif
}

}  // namespace

int main() {
  port::SecondCore::start(fault);
  for (;;) port::SecondCore::relax();
}
