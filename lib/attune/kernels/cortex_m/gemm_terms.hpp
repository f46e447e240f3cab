// Four terms of sums on the single-precision FPU of a Cortex-M, as assembly. Register blocks consist of them.
// A term has one rounding (vfma) or two (vmla, or vmul and vadd).
//
// vmla takes one cycle on M7 and M55, and three on M4 and M33. There vmul and vadd take one each, pipelined
// (ports/cycles/README.md). They have the same bits and more code.
#pragma once

#include <attune/kernels/policy.hpp>

#if ATTUNE_CORTEX_M_FPU

// Whether the FPU computes in double precision, too. Compilers disagree on the bit of half precision.
#define ATTUNE_DOUBLE_FPU ((__ARM_FP & 8) != 0)

// Whether a block with more words and fewer load instructions is faster: on M4, where a multiple load takes a
// cycle more than its words. Its code is larger.
#if !ATTUNE_FOR_SIZE && __ARM_ARCH == 7 && !ATTUNE_DOUBLE_FPU && \
    !(defined(ATTUNE_SPLIT_VMLA) && ATTUNE_SPLIT_VMLA == 0)
#define ATTUNE_WIDE_TILES 1
#else
#define ATTUNE_WIDE_TILES 0
#endif

// Whether vmul and vadd are faster than vmla. Compilers define the same macros for an M7 without double
// precision as for an M4, so cmake/arm-none-eabi.cmake passes -DATTUNE_SPLIT_VMLA=0 for it.
#if ATTUNE_FUSED
#undef ATTUNE_SPLIT_VMLA
#define ATTUNE_SPLIT_VMLA 0
#elif !defined(ATTUNE_SPLIT_VMLA)
#if ATTUNE_DOUBLE_FPU
#define ATTUNE_SPLIT_VMLA 0
#else
#define ATTUNE_SPLIT_VMLA 1
#endif
#endif

// Whether consecutive single loads, which pipeline (ports/cycles/README.md), are faster than multiple loads
// beside vmul and vadd: on M4. Their code is larger, so not at -Os.
#if ATTUNE_SPLIT_VMLA && __ARM_ARCH == 7 && !ATTUNE_FOR_SIZE
#define ATTUNE_LOADS_PIPELINE 1
#else
#define ATTUNE_LOADS_PIPELINE 0
#endif

// cᵢ += aᵢ·bᵢ in this order. p0 … p3 hold products with instructions of their own.
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
