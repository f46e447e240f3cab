// Four terms of sums on the single-precision FPU of a Cortex-M, as assembly: what the register blocks are
// made of. One rounding a term (vfma) or two (vmla, or vmul and vadd).
//
// With two roundings, vmla takes one cycle on M7 and M55, and three on M4 and M33, which take vmul and vadd
// in one each, pipelined (ports/cycles/README.md). The bits are the same, the code is larger.
#pragma once

#include <attune/kernels/policy.hpp>

#if ATTUNE_CORTEX_M_FPU

// Whether a block that loads more words by fewer instructions takes less time: on M4, where every multiple
// load takes a cycle beside those of its words. Its code is larger.
#if !defined(__OPTIMIZE_SIZE__) && __ARM_ARCH == 7 && __ARM_FP == 4 && \
    !(defined(ATTUNE_SPLIT_VMLA) && ATTUNE_SPLIT_VMLA == 0)
#define ATTUNE_WIDE_TILES 1
#else
#define ATTUNE_WIDE_TILES 0
#endif

// Whether a vmul and a vadd take less time than a vmla. What compilers tell of an M7 without double precision
// is what they tell of an M4: cmake/arm-none-eabi.cmake says -DATTUNE_SPLIT_VMLA=0 for it.
#if ATTUNE_FUSED
#undef ATTUNE_SPLIT_VMLA
#define ATTUNE_SPLIT_VMLA 0
#elif !defined(ATTUNE_SPLIT_VMLA)
#if __ARM_FP == 4
#define ATTUNE_SPLIT_VMLA 1
#else
#define ATTUNE_SPLIT_VMLA 0
#endif
#endif

// Whether single loads in a row, pipelined (ports/cycles/README.md), take less time than multiple loads
// beside vmul and vadd: on M4. Their code is larger, and not for -Os.
#if ATTUNE_SPLIT_VMLA && __ARM_ARCH == 7 && !defined(__OPTIMIZE_SIZE__)
#define ATTUNE_LOADS_PIPELINE 1
#else
#define ATTUNE_LOADS_PIPELINE 0
#endif

// cᵢ += aᵢ·bᵢ in this order. p0 … p3 hold their products, if those are instructions of their own.
#if ATTUNE_SPLIT_VMLA
#define ATTUNE_MACS(c0, a0, b0, c1, a1, b1, c2, a2, b2, c3, a3, b3, p0, p1, p2, p3)               \
  "vmul.f32 " p0 "," a0 "," b0 "\n vmul.f32 " p1 "," a1 "," b1 "\n vmul.f32 " p2 "," a2 "," b2    \
  "\n vmul.f32 " p3 "," a3 "," b3 "\n vadd.f32 " c0 "," c0 "," p0 "\n vadd.f32 " c1 "," c1 "," p1 \
  "\n vadd.f32 " c2 "," c2 "," p2 "\n vadd.f32 " c3 "," c3 "," p3 "\n"
#else
#if ATTUNE_FUSED
#define ATTUNE_TERM "vfma.f32 "
#else
#define ATTUNE_TERM "vmla.f32 "
#endif
#define ATTUNE_MACS(c0, a0, b0, c1, a1, b1, c2, a2, b2, c3, a3, b3, ...)                           \
  ATTUNE_TERM c0 "," a0 "," b0 "\n" ATTUNE_TERM c1 "," a1 "," b1 "\n" ATTUNE_TERM c2 "," a2 "," b2 \
                 "\n" ATTUNE_TERM c3 "," a3 "," b3 "\n"
#endif

#endif
