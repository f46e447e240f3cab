// ports/xtensa/rom.cpp against the arithmetic of this machine: drawn bits, neighbors of limits, sums that
// cancel.
#include "../../ports/xtensa/rom.cpp"

#include <cstdio>

#include <attune/core/rng.hpp>

namespace {

int passed = 0, failed = 0;

bool same(float a, float b) { return word_of(a) == word_of(b) || (a != a && b != b); }

void check(const char* what, bool holds, Word a, Word b) {
  ++(holds ? passed : failed);
  if (!holds && failed < 10) std::printf("FAILED %s of %08x and %08x\n", what, a, b);
}

void compare(Word x, Word y) {
  const float a = std::bit_cast<float>(x), b = std::bit_cast<float>(y);
  check("sum", same(__addsf3(a, b), a + b), x, y);
  check("difference", same(__subsf3(a, b), a - b), x, y);
  check("product", same(__mulsf3(a, b), a * b), x, y);
  check("float",
        same(__floatsisf(static_cast<std::int32_t>(x)), static_cast<float>(static_cast<std::int32_t>(x))), x,
        0);
  check("float of unsigned", same(__floatunsisf(x), static_cast<float>(x)), x, 0);
  const Long p = join(x, y), q = join(y, x);
  check("long product", __muldi3(p, q) == p * q && __umulsidi3(x, y) == Long{x} * y, x, y);
  if (y == 0 || y == ~0U || x == 0) return;
  check("quotient", __udivsi3(x, y) == x / y && __umodsi3(x, y) == x % y, x, y);
  check("long quotient", __udivdi3(p, y) == p / y && __umoddi3(p, q) == p % q, x, y);
  const auto s = static_cast<std::int32_t>(x), t = static_cast<std::int32_t>(y);
  check("signed quotient", __divsi3(s, t) == s / t && __divdi3(s * 70000LL, t) == s * 70000LL / t, x, y);
}

}  // namespace

int main() {
  static constexpr Word kLimits[] = {0,          1,          2,          0x007FFFFF, 0x00800000,
                                     0x00800001, 0x00FFFFFF, 0x01000000, 0x34000000, 0x33FFFFFF,
                                     0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x4B7FFFFF, 0x4B800000,
                                     0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000};
  for (const Word x : kLimits) {
    for (const Word y : kLimits) {
      compare(x, y), compare(x | kSign, y), compare(x, y | kSign), compare(x | kSign, y | kSign);
    }
  }
  attune::Rng rng(1);
  const auto draw = [&] {
    return static_cast<Word>(rng.next() >> 16 & 0xFFFF) << 16 | static_cast<Word>(rng.next() >> 16 & 0xFFFF);
  };
  for (int i = 0; i < 1'000'000; ++i) {
    const Word x = draw(), y = draw();
    compare(x, y);
    compare(x, (x & 0xFF800000) + (y & 0x00FFFFFF));  // exponents that are near
    compare(x & 0x80FFFFFF, y);                       // subnormal, or nearly
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
