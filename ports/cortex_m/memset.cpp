// memset, by which the library clears gradients and masked scores, in a third of newlib's bytes, where words
// may stand at any address (from Armv7-M on).
#include <cstddef>

#if defined(__ARM_FEATURE_UNALIGNED)

// Four words at a time, then words, then bytes.
extern "C" [[gnu::naked]] void* memset(void*, int, std::size_t) {
  asm(".syntax unified\n"
      "uxtb r1,r1\n mov.w r3,#0x01010101\n muls r1,r3,r1\n mov r3,r0\n subs r2,#16\n blo 2f\n"
      "1: str r1,[r3]\n str r1,[r3,#4]\n str r1,[r3,#8]\n str r1,[r3,#12]\n adds r3,#16\n subs r2,#16\n bhs "
      "1b\n"
      "2: adds r2,#12\n bmi 4f\n"
      "3: str r1,[r3],#4\n subs r2,#4\n bpl 3b\n"
      "4: adds r2,#4\n beq 6f\n"
      "5: strb r1,[r3],#1\n subs r2,#1\n bne 5b\n"
      "6: bx lr\n");
}

#endif
