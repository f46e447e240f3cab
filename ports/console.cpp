#include "console.hpp"

#include <bit>

#include "port.hpp"

namespace port {
namespace {

// A non-negative decimal number built bit by bit. Doubling digits needs neither a 64-bit division (a kilobyte
// of library on small cores) nor floating point, and holds every finite float: 3.4e38 has 39 digits.
class Decimal {
 public:
  // value = 2 * value + bit
  void shift_in(std::uint64_t bit) {
    unsigned carry = static_cast<unsigned>(bit & 1U);
    for (int i = 0; i < length_; ++i) {
      const unsigned doubled = 2U * digits_[i] + carry;
      carry = doubled >= 10U ? 1U : 0U;
      digits_[i] = static_cast<std::uint8_t>(doubled - 10U * carry);
    }
    if (carry != 0U) digits_[length_++] = 1U;
  }

  void shift_in_all(std::uint64_t value) {
    for (int bit = 63; bit >= 0; --bit) shift_in(value >> bit);
  }

  void print_to(Line& line) const {
    if (length_ == 0) line.add('0');
    for (int i = length_ - 1; i >= 0; --i) line.add(static_cast<char>('0' + digits_[i]));
  }

 private:
  int length_ = 0;
  std::uint8_t digits_[40];  // least significant first
};

constexpr int kMaxDecimals = 9;
// Binary places of the fraction below; four bits are left for the next decimal digit.
constexpr int kFractionBits = 60;

// The part of mantissa * 2^-places below one, scaled by 2^kFractionBits.
std::uint64_t fraction_of(std::uint32_t mantissa, int places) {
  const std::uint64_t below_one = places < 32 ? mantissa & ((1U << places) - 1U) : mantissa;
  if (places <= kFractionBits) return below_one << (kFractionBits - places);
  const int lost = places - kFractionBits;
  return lost < 32 ? below_one >> lost : 0U;
}

}  // namespace

void Line::flush() {
  if (length_ > 0) write(text_, length_);
  length_ = 0;
}

void Line::add(char character) {
  if (length_ == sizeof text_) flush();
  text_[length_++] = character;
}

// Without strlen, which is 200 bytes.
void Line::add(const char* text) {
  while (*text != '\0') add(*text++);
}

void Line::add(std::string_view text) {
  for (const char character : text) add(character);
}

void Line::add_unsigned(std::uint64_t number) {
  Decimal decimal;
  decimal.shift_in_all(number);
  decimal.print_to(*this);
}

void Line::add_signed(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  if (number < 0) add('-');
  add_unsigned(number < 0 ? 0U - bits : bits);
}

void Line::add_hex(std::uint32_t high, std::uint32_t low, int digits) {
  while (digits-- > 0) {
    const std::uint32_t word = digits >= 8 ? high : low;
    add("0123456789abcdef"[(word >> (4 * (digits % 8))) & 15U]);
  }
}

void Line::add(Fixed number) {
  const auto bits = std::bit_cast<std::uint32_t>(number.value);
  const auto biased = static_cast<int>((bits >> 23) & 0xFFU);
  const std::uint32_t stored = bits & 0x7FFFFFU;
  if (biased == 0xFF && stored != 0U) return add("nan");
  if ((bits >> 31) != 0U) add('-');
  if (biased == 0xFF) return add("inf");

  // |value| = mantissa * 2^exponent, exactly.
  const std::uint32_t mantissa = biased == 0 ? stored : stored | 0x800000U;
  const int exponent = (biased == 0 ? 1 : biased) - 150;
  const int decimals = number.decimals < 0              ? 0
                       : number.decimals > kMaxDecimals ? kMaxDecimals
                                                        : number.decimals;

  std::uint64_t fraction = exponent < 0 ? fraction_of(mantissa, -exponent) : 0U;
  std::uint32_t whole = exponent >= 0 ? mantissa : exponent > -32 ? mantissa >> -exponent : 0U;
  std::uint8_t digits[kMaxDecimals];
  for (int i = 0; i < decimals; ++i) {
    fraction *= 10U;
    digits[i] = static_cast<std::uint8_t>(fraction >> kFractionBits);
    fraction &= (std::uint64_t{1} << kFractionBits) - 1U;
  }
  if (fraction >> (kFractionBits - 1) != 0U) {
    int i = decimals - 1;
    while (i >= 0 && digits[i] == 9U) digits[i--] = 0U;
    if (i >= 0) {
      ++digits[i];
    } else {
      ++whole;
    }
  }

  Decimal decimal;
  decimal.shift_in_all(whole);
  for (int i = 0; i < exponent; ++i) decimal.shift_in(0U);
  decimal.print_to(*this);
  if (decimals > 0) add('.');
  for (int i = 0; i < decimals; ++i) add(static_cast<char>('0' + digits[i]));
}

}  // namespace port
