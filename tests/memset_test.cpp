// memset, which ports bring along where it is smaller than newlib's: every alignment and every rest of a
// block.
#include <cstddef>
#include <cstring>

#include "check.hpp"

TEST(Memset, fills_its_range_and_nothing_else) {
  void* (*volatile fill)(void*, int, std::size_t) = std::memset;  // not the compiler's own
  unsigned char bytes[120];
  for (std::size_t first = 0; first < 5; ++first) {
    for (std::size_t size = 0; size < 110; ++size) {
      for (unsigned char& byte : bytes) byte = 0x11;
      EXPECT_EQ(fill(bytes + first, 0x1A5, size), bytes + first);
      int wrong = 0;
      for (std::size_t i = 0; i < sizeof bytes; ++i) {
        const bool inside = i >= first && i < first + size;
        wrong += bytes[i] != (inside ? 0xA5 : 0x11);
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}
