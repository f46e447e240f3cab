// Products of one row with a quantized B (simd/dequantize.hpp) stored along k, on the single-precision FPU of
// a Cortex-M, in assembly: eight columns of B, two k at a time.
//
// Dequantizing two weights takes four or five instructions for only two multiply-accumulates. Two k of eight
// columns take 51 to 59 instructions. Sums have the bits of the portable block.
#pragma once

#include <attune/kernels/cortex_m/skinny_gemm.hpp>
#include <attune/kernels/simd/dequantize.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// Loads two weights, or one, at `from`.
#define ATTUNE_INT8_PAIR(from, d, s0, s1)                                                          \
  "ldrsb r11,[" from "],#1\n ldrsb lr,[" from "],#1\n vmov " d ",r11,lr\n vcvt.f32.s32 " s0 "," s0 \
  "\n vcvt.f32.s32 " s1 "," s1 "\n"
#define ATTUNE_INT8_SINGLE(from, s) "ldrsb lr,[" from "]\n vmov " s ",lr\n vcvt.f32.s32 " s "," s "\n"
#define ATTUNE_BFLOAT16_PAIR(from, d, s0, s1) \
  "ldr lr,[" from "],#4\n lsl r11,lr,#16\n bfc lr,#0,#16\n vmov " d ",r11,lr\n"
#define ATTUNE_BFLOAT16_SINGLE(from, s) "ldrh lr,[" from "]\n lsl lr,lr,#16\n vmov " s ",lr\n"
#define ATTUNE_FLOAT16_PAIR(from, d, s0, s1) \
  "ldr lr,[" from "],#4\n vmov " s0 ",lr\n vcvtt.f32.f16 " s1 "," s0 "\n vcvtb.f32.f16 " s0 "," s0 "\n"
#define ATTUNE_FLOAT16_SINGLE(from, s) "ldrh lr,[" from "]\n vmov " s ",lr\n vcvtb.f32.f16 " s "," s "\n"

#define ATTUNE_PAIR_OF_COLUMNS(pair, from0, from1, c0, c1)      \
  pair(from0, "d4", "s8", "s9") pair(from1, "d5", "s10", "s11") \
      ATTUNE_MACS(c0, "s0", "s8", c1, "s0", "s10", c0, "s1", "s9", c1, "s1", "s11", "s2", "s3", "s4", "s5")
#define ATTUNE_FOUR_COLUMNS(single, from0, from1, from2, from3, c0, c1, c2, c3)     \
  single(from0, "s8") single(from1, "s9") single(from2, "s10") single(from3, "s11") \
      ATTUNE_MACS(c0, "s0", "s8", c1, "s0", "s9", c2, "s0", "s10", c3, "s0", "s11", "s2", "s3", "s4", "s5")

// sums[8 · blocks] = Σ_k a(k)·b(k, …), with the arguments of skinny_gemm. The stack has A, B, the grid and
// the number of remaining blocks.
#define ATTUNE_NARROW_ROW(name, pair, single)                                                         \
  [[gnu::naked]] inline void name(const float*, const void*, float*, const RowGrid&, int) {           \
    asm("push {r0,r1,r3,r4,r5,r6,r7,r8,r9,r10,r11,lr}\n vpush {d12-d15}\n"                          \
        "0: ldrd r0,r1,[sp,#32]\n ldr r3,[sp,#40]\n ldmia r3,{r3,r12,lr}\n vldmia lr,{s24-s31}\n add r4,r1,r3\n " \
        "add r5,r4,r3\n add r6,r5,r3\n add r7,r6,r3\n add r8,r7,r3\n add r9,r8,r3\n add r10,r9,r3\n " \
        "subs r12,r12,#2\n"                                                                         \
        "1: vldmia r0!,{s0-s1}\n"                                                                   \
        ATTUNE_PAIR_OF_COLUMNS(pair, "r1", "r4", "s24", "s25")                                      \
        ATTUNE_PAIR_OF_COLUMNS(pair, "r5", "r6", "s26", "s27")                                      \
        ATTUNE_PAIR_OF_COLUMNS(pair, "r7", "r8", "s28", "s29")                                      \
        ATTUNE_PAIR_OF_COLUMNS(pair, "r9", "r10", "s30", "s31")                                     \
        "subs r12,r12,#2\n bhs 1b\n adds r12,r12,#2\n beq 2f\n vldr s0,[r0]\n"                      \
        ATTUNE_FOUR_COLUMNS(single, "r1", "r4", "r5", "r6", "s24", "s25", "s26", "s27")             \
        ATTUNE_FOUR_COLUMNS(single, "r7", "r8", "r9", "r10", "s28", "s29", "s30", "s31")            \
        "2: vstmia r2!,{s24-s31}\n ldr r1,[sp,#36]\n add r1,r1,r3,lsl #3\n str r1,[sp,#36]\n "       \
        "ldr lr,[sp,#80]\n subs lr,lr,#1\n str lr,[sp,#80]\n bne 0b\n "                             \
        "vpop {d12-d15}\n add sp,sp,#12\n pop {r4,r5,r6,r7,r8,r9,r10,r11,pc}\n"); \
  }

ATTUNE_NARROW_ROW(row_along_int8, ATTUNE_INT8_PAIR, ATTUNE_INT8_SINGLE)
ATTUNE_NARROW_ROW(row_along_bfloat16, ATTUNE_BFLOAT16_PAIR, ATTUNE_BFLOAT16_SINGLE)
ATTUNE_NARROW_ROW(row_along_float16, ATTUNE_FLOAT16_PAIR, ATTUNE_FLOAT16_SINGLE)

#undef ATTUNE_INT8_PAIR
#undef ATTUNE_INT8_SINGLE
#undef ATTUNE_BFLOAT16_PAIR
#undef ATTUNE_BFLOAT16_SINGLE
#undef ATTUNE_FLOAT16_PAIR
#undef ATTUNE_FLOAT16_SINGLE
#undef ATTUNE_PAIR_OF_COLUMNS
#undef ATTUNE_FOUR_COLUMNS
#undef ATTUNE_NARROW_ROW

// The function for a B; nullptr for none.
template <class B>
inline constexpr RowSums* kQuantizedRow = nullptr;
template <>
inline constexpr RowSums* kQuantizedRow<const Int8*> = row_along_int8;
template <>
inline constexpr RowSums* kQuantizedRow<const Bfloat16*> = row_along_bfloat16;
template <>
inline constexpr RowSums* kQuantizedRow<const Float16*> = row_along_float16;

template <class B>
constexpr bool fits_quantized_row(const GemmShape& shape) {
  return kQuantizedRow<B> != nullptr && shape.rows == 1 && shape.cols >= kAlongCols &&
         shape.cols <= kMaxExtent && shape.depth >= 2 && shape.cols * shape.depth >= kWorthRows &&
         shape.a_col == 1 && shape.b_row == 1;
}

template <class Element, GemmShape shape>
inline constexpr RowGrid kQuantizedRowGrid{.b_stride = static_cast<int>(sizeof(Element)) * shape.b_col,
                                           .depth = shape.depth,
                                           .zeros = kNoSums,
                                           .sums = kQuantizedRow<const Element*>,
                                           .a_stride = 0,
                                           .c_stride = 0,
                                           .b_step = static_cast<int>(sizeof(Element)) * shape.b_col,
                                           .rows = 1,
                                           .cols = shape.cols,
                                           .width = kAlongCols,
                                           .blocks = shape.cols / kAlongCols,
                                           .twelves = 0,
                                           .fours = 0,
                                           .gap = 0};

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
