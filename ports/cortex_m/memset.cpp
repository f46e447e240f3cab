// memset, by which the library clears gradients, in a quarter of newlib's bytes, where words may stand at any
// address (from Armv7-M on).
#include <cstddef>
#include <cstdint>

#if defined(__ARM_FEATURE_UNALIGNED)

extern "C" void* memset(void* to, int value, std::size_t size) {
  auto* at = static_cast<unsigned char*>(to);
  const auto byte = static_cast<unsigned char>(value);
  const std::uint32_t word = 0x01010101U * byte;
  constexpr std::size_t kBlock = 8 * sizeof word;
  // What the barriers change keeps compilers from calling memset, and from counting blocks once more.
  while (size >= kBlock) {
    for (std::size_t i = 0; i < kBlock; i += sizeof word) __builtin_memcpy(at + i, &word, sizeof word);
    at += kBlock;
    size -= kBlock;
    asm volatile("" : "+r"(at), "+r"(size)::"memory");
  }
  while (size != 0) {
    *at++ = byte;
    --size;
    asm volatile("" : "+r"(at), "+r"(size)::"memory");
  }
  return to;
}

#endif
