#include <attune/persistence/crc32.hpp>

#include "check.hpp"

TEST(Crc32, is_that_of_ethernet) {
  static_assert(attune::crc32("123456789", 9) == 0xCBF43926u);
  const unsigned char zeros[4] = {}, ones[4] = {0xFF, 0xFF, 0xFF, 0xFF};
  EXPECT_EQ(attune::crc32(zeros, 4), 0x2144DF1Cu);
  EXPECT_EQ(attune::crc32(ones, 4), 0xFFFFFFFFu);
}

TEST(Crc32, of_nothing_is_zero) { EXPECT_EQ(attune::crc32("", 0), 0u); }

TEST(Crc32, continues_over_parts) {
  const char* const text = "123456789";
  for (std::size_t first = 0; first <= 9; ++first)
    EXPECT_EQ(attune::crc32(text + first, 9 - first, attune::crc32(text, first)), 0xCBF43926u);
}

TEST(Crc32, detects_every_changed_bit) {
  char text[] = "123456789";
  for (int bit = 0; bit < 72; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
    EXPECT_NE(attune::crc32(text, 9), 0xCBF43926u);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ 1 << bit % 8);
  }
}
