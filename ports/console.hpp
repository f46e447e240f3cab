// Text output for examples and tests over port::write: no heap, no printf, no floating-point instruction.
//
//   port::print("step ", step, " loss ", port::fixed(loss, 6), '\n');
//
// The conversions are exact integer arithmetic, so a number prints the same on every port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace port {

struct Fixed {
  float value;
  int decimals;
};

// `value` with 0 to 9 decimals, halves rounded away from zero; "nan", "inf" and "-inf" as such.
constexpr Fixed fixed(float value, int decimals) { return {value, decimals}; }
// A double would bring software double arithmetic into firmware: convert explicitly.
Fixed fixed(double value, int decimals) = delete;

struct Hex {
  std::uint64_t value;
  int digits;
};

// Exactly 8 or 16 lower-case digits, without a prefix.
constexpr Hex hex8(std::uint32_t value) { return {value, 8}; }
constexpr Hex hex16(std::uint64_t value) { return {value, 16}; }

// One line in the making: gathers text so that a line costs one port::write, and writes it when destroyed.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { flush(); }

  void add(char character);
  void add(std::string_view text);
  void add(const char* text);
  void add(Fixed number);
  void add(Hex number) {
    add_hex(static_cast<std::uint32_t>(number.value >> 32), static_cast<std::uint32_t>(number.value),
            number.digits);
  }
  void add_unsigned(std::uint64_t number);
  void add_signed(std::int64_t number);

  template <class Integer>
    requires(std::is_integral_v<Integer>)
  void add(Integer number) {
    if constexpr (std::is_signed_v<Integer>) {
      add_signed(number);
    } else {
      add_unsigned(number);
    }
  }

  void flush();

 private:
  void add_hex(std::uint32_t high, std::uint32_t low, int digits);

  std::size_t length_ = 0;
  char text_[120];
};

// Prints strings, characters, integers, fixed(), hex8() and hex16(), one after the other.
template <class... Parts>
void print(const Parts&... parts) {
  Line line;
  (line.add(parts), ...);
}

}  // namespace port
