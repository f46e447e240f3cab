// ReLU and its gradient on a Cortex-M with an FPU, in assembly. A comparison of floats takes the FPU, its
// flags and a branch; here the bits of a float are an integer whose sign becomes a mask.
//
//   ReLU      clears x from the smallest number below −0 to −∞: x − 1 + 2²³ is negative there. The sum
//             saturates, so positive x and −0 (x − 1 is the largest integer) stay. NaN stays, whatever its
//             sign
//   gradient  keeps dy for x from the smallest positive number to ∞: x + 2³¹ − 1 + 2²³ is negative there
#pragma once

#include <attune/kernels/policy.hpp>

#if ATTUNE_CORTEX_M_FPU && defined(__ARM_FEATURE_DSP)

namespace ATTUNE_NAMESPACE::kernels::detail {

// y = max(x, 0), `size` scalars, a multiple of four and at least four. `y` may be `x`.
ATTUNE_INLINE void relu_in_fours(int size, const float* x, float* y) {
  int t, u;
#define ATTUNE_TWO(x0, x1)                                                                                   \
  "sub %[t]," x0 ",#1\n sub %[u]," x1                                                                        \
  ",#1\n qadd %[t],%[t],%[infinite]\n qadd %[u],%[u],%[infinite]\n bic " x0 "," x0 ",%[t],asr #31\n bic " x1 \
  "," x1 ",%[u],asr #31\n"
  asm volatile("1: ldmia %[x]!,{r4,r5,r6,r8}\n" ATTUNE_TWO("r4", "r5")
                   ATTUNE_TWO("r6", "r8") "subs %[size],%[size],#4\n stmia %[y]!,{r4,r5,r6,r8}\n bne 1b"
               : [x] "+&r"(x), [y] "+&r"(y), [size] "+&r"(size), [t] "=&r"(t), [u] "=&r"(u)
               : [infinite] "r"(1 << 23)
               : "cc", "memory", "r4", "r5", "r6", "r8");
#undef ATTUNE_TWO
}

// dx = dy for x > 0, else 0. `size` is even, and at least two. `dx` may be `dy` or `x`.
ATTUNE_INLINE void relu_backward_in_pairs(int size, const float* x, const float* dy, float* dx) {
  asm volatile(
      "1: ldrd r4,r5,[%[x]],#8\n ldrd r6,r8,[%[dy]],#8\n add r4,r4,%[least]\n add r5,r5,%[least]\n "
      "qadd r4,r4,%[infinite]\n qadd r5,r5,%[infinite]\n and r6,r6,r4,asr #31\n and r8,r8,r5,asr #31\n "
      "subs %[size],%[size],#2\n strd r6,r8,[%[dx]],#8\n bne 1b"
      : [x] "+&r"(x), [dy] "+&r"(dy), [dx] "+&r"(dx), [size] "+&r"(size)
      : [least] "r"(0x7FFFFFFF), [infinite] "r"(1 << 23)
      : "cc", "memory", "r4", "r5", "r6", "r8");
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
