// A firmware whose stack overflows: a recursion without an end, in frames of 200 bytes.
#include <cstdint>

namespace {

// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] std::uint32_t recurse(std::uint32_t depth) {
  volatile std::uint32_t frame[50];
  for (volatile std::uint32_t& word : frame) word = depth;
  return depth == 0xFFFFFFFFU ? 0U : recurse(depth + 1) + frame[depth % 50];
}

}  // namespace

int main() { return recurse(0) == 0U ? 1 : 0; }
