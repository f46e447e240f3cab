// What a C library reads of the literals that the header has.
#include <attune/exchange/cpp_header.hpp>

#include <cstdlib>
#include <string>

#include "check.hpp"

namespace {

struct Text {
  std::string characters;
  void operator()(const char* text, std::size_t size) { characters.append(text, size); }
};

template <class Scalar>
std::string literal_of(Scalar value) {
  Text text;
  attune::detail::HeaderText<Text> line(text);
  line.add_literal(value);
  line.line();
  return text.characters;
}

}  // namespace

TEST(CppHeader, literals_are_read_as_the_same_bits) {
  attune::Rng rng(3);
  for (int i = 0; i < 200'000; ++i) {
    const std::uint32_t bits = rng.next();
    const float value = std::bit_cast<float>(bits);
    if (value - value == 0) {
      const std::string literal = literal_of(value);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(std::strtof(literal.c_str(), nullptr)), bits) << literal;
    }
    const std::uint64_t wide = std::uint64_t{bits} << 32 | rng.next();
    const double large = std::bit_cast<double>(i % 10 == 0 ? wide & ~(std::uint64_t{0x7FF} << 52) : wide);
    if (large - large == 0) {
      const std::string literal = literal_of(large);
      ASSERT_EQ(std::bit_cast<std::uint64_t>(std::strtod(literal.c_str(), nullptr)),
                std::bit_cast<std::uint64_t>(large))
          << literal;
    }
  }
}
