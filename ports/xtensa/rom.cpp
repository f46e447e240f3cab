// Arithmetic that an ESP8266 has in its ROM: Debian's libgcc for it leaves these functions out, and a board
// without that ROM brings them. Floats are rounded to nearest, ties to even, subnormals included (IEEE 754).
#include <bit>
#include <cstdint>
#include <initializer_list>

namespace {

using Word = std::uint32_t;
using Long = std::uint64_t;

constexpr Word kSign = 1U << 31, kInfinity = 0xFFU << 23, kNaN = kInfinity | 1U << 22, kHidden = 1U << 23;
constexpr Word kTop = 1U << 30;  // the leading bit of a significand, with 7 bits behind a float's

constexpr Long join(Word high, Word low) { return static_cast<Long>(high) << 32 | low; }

// x / 2^by, with a last bit that tells of lost ones.
constexpr Word shift_right(Word x, int by) {
  if (by == 0) return x;
  return by > 31 ? static_cast<Word>(x != 0) : x >> by | static_cast<Word>((x << (32 - by)) != 0);
}

// significand · 2^(exponent − 157), rounded. Below 2^30 only if the exponent is 1.
float rounded(Word sign, int exponent, Word significand) {
  if (exponent <= 0) {
    significand = shift_right(significand, 1 - exponent);
    exponent = 1;
  }
  if (exponent >= 255) return std::bit_cast<float>(sign | kInfinity);
  Word whole = (significand + 64) >> 7;
  if ((significand & 127) == 64) whole &= ~1U;
  return std::bit_cast<float>(sign | ((static_cast<Word>(exponent - 1) << 23) + whole));
}

// The same for a significand in (0, 2^31), which may have zeros in front.
float normalized(Word sign, int exponent, Word significand, int least = -200) {
  while (significand < kTop && exponent > least) {
    significand <<= 1;
    --exponent;
  }
  return rounded(sign, exponent, significand);
}

struct Parts {
  Word magnitude, sign;
  int exponent;
  Word significand;  // times 2^(exponent − 157)
  explicit Parts(Word bits)
      : magnitude(bits & ~kSign),
        sign(bits & kSign),
        exponent(magnitude < kHidden ? 1 : static_cast<int>(magnitude >> 23)),
        significand((magnitude < kHidden ? magnitude : (magnitude & (kHidden - 1)) | kHidden) << 7) {}
};

float sum(Word x, Word y) {
  Parts a(x), b(y);
  if (a.magnitude > kInfinity || b.magnitude > kInfinity) return std::bit_cast<float>(kNaN);
  if (a.magnitude < b.magnitude) {
    const Parts smaller = a;
    a = b;
    b = smaller;
  }
  if (a.magnitude == kInfinity) {
    const bool opposite = b.magnitude == kInfinity && a.sign != b.sign;
    return std::bit_cast<float>(opposite ? kNaN : a.sign | kInfinity);
  }
  const Word small = shift_right(b.significand, a.exponent - b.exponent);
  if (a.sign == b.sign) {
    const Word both = a.significand + small;
    return both >> 31 != 0 ? rounded(a.sign, a.exponent + 1, shift_right(both, 1))
                           : rounded(a.sign, a.exponent, both);
  }
  const Word rest = a.significand - small;
  return rest == 0 ? 0.0f : normalized(a.sign, a.exponent, rest, 1);
}

Word word_of(float x) { return std::bit_cast<Word>(x); }

template <class Number>
Number quotient(Number dividend, Number divisor, Number& rest) {
  constexpr int kBits = 8 * sizeof(Number);
  Number result = 0;
  rest = 0;
  for (int bit = kBits - 1; bit >= 0; --bit) {
    const bool carry = rest >> (kBits - 1) != 0;
    rest = rest << 1 | (dividend >> bit & 1);
    if (carry || rest >= divisor) {
      rest -= divisor;
      result |= Number{1} << bit;
    }
  }
  return result;
}

}  // namespace

extern "C" {

Word __udivsi3(Word a, Word b) {
  Word rest;
  return quotient(a, b, rest);
}
Word __umodsi3(Word a, Word b) {
  Word rest;
  quotient(a, b, rest);
  return rest;
}
std::int32_t __divsi3(std::int32_t a, std::int32_t b) {
  Word rest;
  const Word size = quotient(a < 0 ? 0U - static_cast<Word>(a) : static_cast<Word>(a),
                             b < 0 ? 0U - static_cast<Word>(b) : static_cast<Word>(b), rest);
  return static_cast<std::int32_t>((a < 0) != (b < 0) ? 0U - size : size);
}
Long __udivdi3(Long a, Long b) {
  Long rest;
  return quotient(a, b, rest);
}
Long __umoddi3(Long a, Long b) {
  Long rest;
  quotient(a, b, rest);
  return rest;
}
std::int64_t __divdi3(std::int64_t a, std::int64_t b) {
  Long rest;
  const Long size = quotient(a < 0 ? Long{0} - static_cast<Long>(a) : static_cast<Long>(a),
                             b < 0 ? Long{0} - static_cast<Long>(b) : static_cast<Long>(b), rest);
  return static_cast<std::int64_t>((a < 0) != (b < 0) ? Long{0} - size : size);
}

// Of halves: the processor's products have 32 bits.
Long __umulsidi3(Word a, Word b) {
  constexpr Word kLow = 0xFFFF;
  const Word low = (a & kLow) * (b & kLow), first = (a >> 16) * (b & kLow), second = (a & kLow) * (b >> 16);
  const Word middle = (low >> 16) + (first & kLow) + (second & kLow);
  return join((a >> 16) * (b >> 16) + (first >> 16) + (second >> 16) + (middle >> 16),
              (middle << 16) | (low & kLow));
}
Long __muldi3(Long a, Long b) {
  const Word a_low = static_cast<Word>(a), b_low = static_cast<Word>(b);
  const Long low = __umulsidi3(a_low, b_low);
  const Word high =
      static_cast<Word>(low >> 32) + static_cast<Word>(a >> 32) * b_low + a_low * static_cast<Word>(b >> 32);
  return join(high, static_cast<Word>(low));
}

float __addsf3(float a, float b) { return sum(word_of(a), word_of(b)); }
float __subsf3(float a, float b) { return sum(word_of(a), word_of(b) ^ kSign); }

float __mulsf3(float x, float y) {
  Parts a(word_of(x)), b(word_of(y));
  const Word sign = a.sign ^ b.sign;
  if (a.magnitude > kInfinity || b.magnitude > kInfinity) return std::bit_cast<float>(kNaN);
  if (a.magnitude == kInfinity || b.magnitude == kInfinity) {
    return std::bit_cast<float>(a.magnitude == 0 || b.magnitude == 0 ? kNaN : sign | kInfinity);
  }
  if (a.magnitude == 0 || b.magnitude == 0) return std::bit_cast<float>(sign);
  for (Parts* const each : {&a, &b}) {
    while (each->significand < kTop) {
      each->significand <<= 1;
      --each->exponent;
    }
  }
  // 24 bits each, 46 to 48 together.
  const Long product = __umulsidi3(a.significand >> 7, b.significand >> 7);
  const Word high = static_cast<Word>(product >> 16) | static_cast<Word>((product & 0xFFFF) != 0);
  const int exponent = a.exponent + b.exponent - 127;
  return high >> 31 != 0 ? rounded(sign, exponent + 1, shift_right(high, 1)) : rounded(sign, exponent, high);
}

float __floatunsisf(Word x) {
  if (x == 0) return 0.0f;
  return x >> 31 != 0 ? rounded(0, 158, shift_right(x, 1)) : normalized(0, 157, x);
}
float __floatsisf(std::int32_t x) {
  const Word size = x < 0 ? 0U - static_cast<Word>(x) : static_cast<Word>(x);
  const float magnitude = __floatunsisf(size);
  return x < 0 ? std::bit_cast<float>(word_of(magnitude) | kSign) : magnitude;
}
}
