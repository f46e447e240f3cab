// Numbers of a narrow B (simd/dequantize.hpp) into the registers of a Cortex-M's FPU, as assembly: what the
// blocks of narrow weights are made of.
#pragma once

#include <attune/kernels/cortex_m/gemm_tile.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/simd/dequantize.hpp>

#if ATTUNE_CORTEX_M_FPU

// Two numbers, by two loads, into the pair d of s0 and s1. r7 and r11 change.
#define ATTUNE_INT8_TWO(d, s0, s1, load0, load1)                                           \
  "ldrsb r7," load0 "\n ldrsb r11," load1 "\n vmov " d ",r7,r11\n vcvt.f32.s32 " s0 "," s0 \
  "\n vcvt.f32.s32 " s1 "," s1 "\n"
#define ATTUNE_BFLOAT16_TWO(d, s0, s1, load0, load1) \
  "ldrh r7," load0 "\n ldrh r11," load1 "\n lsl r7,r7,#16\n lsl r11,r11,#16\n vmov " d ",r7,r11\n"
#define ATTUNE_FLOAT16_TWO(d, s0, s1, load0, load1)                                       \
  "ldrh r7," load0 "\n ldrh r11," load1 "\n vmov " d ",r7,r11\n vcvtb.f32.f16 " s0 "," s0 \
  "\n vcvtb.f32.f16 " s1 "," s1 "\n"

// The same of numbers that follow each other: halves by one load of a word, which need not be aligned.
#define ATTUNE_INT8_NEXT(...) ATTUNE_INT8_TWO(__VA_ARGS__)
#if __ARM_ARCH >= 8  // where a bit field is late
#define ATTUNE_BFLOAT16_NEXT(d, s0, s1, load, ...) \
  "ldr r11," load "\n lsl r7,r11,#16\n bfc r11,#0,#16\n vmov " s0 ",r7\n vmov " s1 ",r11\n"
#else
#define ATTUNE_BFLOAT16_NEXT(d, s0, s1, load, ...) \
  "ldr r11," load "\n lsl r7,r11,#16\n bfc r11,#0,#16\n vmov " d ",r7,r11\n"
#endif
#define ATTUNE_FLOAT16_NEXT(d, s0, s1, load, ...) \
  "ldr r11," load "\n vmov " s0 ",r11\n vcvtt.f32.f16 " s1 "," s0 "\n vcvtb.f32.f16 " s0 "," s0 "\n"

// Four numbers that follow each other, from where `from` points, which `move` moves on. r5, r7, r10 and
// r11 change: what is loaded waits for the next load.
#define ATTUNE_INT8_FOUR(from, move, d0, s0, s1, d1, s2, s3)                                              \
  "ldrsb r5,[" from ",#1]\n ldrsb r7,[" from ",#2]\n ldrsb r10,[" from ",#3]\n ldrsb r11,[" from "]" move \
  "\n vmov " d1 ",r7,r10\n vmov " d0 ",r11,r5\n vcvt.f32.s32 " s2 "," s2 "\n vcvt.f32.s32 " s3 "," s3     \
  "\n vcvt.f32.s32 " s0 "," s0 "\n vcvt.f32.s32 " s1 "," s1 "\n"
#define ATTUNE_BFLOAT16_FOUR(from, move, d0, s0, s1, d1, s2, s3)                                         \
  "ldr r11,[" from ",#4]\n ldr r10,[" from "]" move                                                      \
  "\n lsl r7,r11,#16\n bfc r11,#0,#16\n lsl r5,r10,#16\n bfc r10,#0,#16\n vmov " d1 ",r7,r11\n vmov " d0 \
  ",r5,r10\n"
#define ATTUNE_FLOAT16_FOUR(from, move, d0, s0, s1, d1, s2, s3)                                       \
  "ldr r11,[" from ",#4]\n ldr r7,[" from "]" move "\n vmov " d0 ",r7,r11\n vcvtt.f32.f16 " s3 "," s1 \
  "\n vcvtb.f32.f16 " s2 "," s1 "\n vcvtt.f32.f16 " s1 "," s0 "\n vcvtb.f32.f16 " s0 "," s0 "\n"

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

// Blocks in assembly that read a B along k, and across; nullptr for none. But for the small tile there are
// those for whole fours of k, and those with a rest.
struct QuantizedBlocks {
  void (*along)();
  void (*across)();
};
enum class QuantizedShape { kTile, kTileAndRest, kSmallTile, kPanel, kPanelAndRest };
template <class B, QuantizedShape>
inline constexpr QuantizedBlocks kQuantizedBlocks{nullptr, nullptr};

// Of functions that are named after the element and the layout.
#define ATTUNE_NARROW_BLOCKS(shape, name)                                                                  \
  template <>                                                                                              \
  inline constexpr QuantizedBlocks kQuantizedBlocks<const Int8*, QuantizedShape::shape>{int8_along_##name, \
                                                                                        nullptr};          \
  template <>                                                                                              \
  inline constexpr QuantizedBlocks kQuantizedBlocks<ScaledRows<Int8, float>, QuantizedShape::shape>{       \
      nullptr, scaled_int8_across_##name};                                                                 \
  template <>                                                                                              \
  inline constexpr QuantizedBlocks kQuantizedBlocks<const Bfloat16*, QuantizedShape::shape>{               \
      bfloat16_along_##name, bfloat16_across_##name};                                                      \
  template <>                                                                                              \
  inline constexpr QuantizedBlocks kQuantizedBlocks<const Float16*, QuantizedShape::shape> {               \
    float16_along_##name, float16_across_##name                                                            \
  }

template <class B>
constexpr bool fits_quantized(const GemmShape& shape) {
  constexpr QuantizedBlocks kBlocks = kQuantizedBlocks<B, QuantizedShape::kPanel>;
  return shape.rows >= 4 && shape.rows <= kMostExtent && shape.cols >= 4 && shape.cols <= kMostExtent &&
         shape.depth >= 4 && shape.a_col == 1 &&
         ((shape.b_row == 1 && kBlocks.along != nullptr) || (shape.b_col == 1 && kBlocks.across != nullptr));
}

template <class Element>
ATTUNE_INLINE const float* scales_of(const Element*) {
  return nullptr;
}
ATTUNE_INLINE const float* scales_of(const ScaledRows<Int8, float>& b) { return b.scale; }

// An epilogue in two parts, so that scales are loaded once for many rows: those of the columns from `col` on,
// if it has any, and what comes after them.
template <class Epilogue>
inline constexpr bool kScalesColumns = false;
template <class Epilogue>
inline constexpr bool kScalesColumns<ScaleColumns<float, Epilogue>> = true;
template <class P, class Epilogue>
ATTUNE_INLINE P column_scales(const Epilogue& epilogue, int col) {
  if constexpr (kScalesColumns<Epilogue>) {
    return load<P>(epilogue.scale + col);
  } else {
    return {};
  }
}
template <class Epilogue>
ATTUNE_INLINE const Epilogue& behind_scales(const Epilogue& epilogue) {
  return epilogue;
}
template <class Epilogue>
ATTUNE_INLINE const Epilogue& behind_scales(const ScaleColumns<float, Epilogue>& epilogue) {
  return epilogue.epilogue;
}

// Four sums of a row of C, in registers that follow each other, are finished and go to `to`, which then
// points into the next row. `finish`, the scales q0 … q3, `col` and `stride`, in bytes, are the loop's around
// it.
#define ATTUNE_FINISH_ROW(to, c0, c1, c2, c3)                                                             \
  {                                                                                                       \
    const TileRow sum =                                                                                   \
        kScalesColumns<Epilogue> ? TileRow{c0 * q0, c1 * q1, c2 * q2, c3 * q3} : TileRow{c0, c1, c2, c3}; \
    const TileRow done = finish(sum, static_cast<const float*>(to), col);                                 \
    c0 = done.lane[0], c1 = done.lane[1], c2 = done.lane[2], c3 = done.lane[3];                           \
    asm volatile("vstmia %0,{" #c0 "-" #c3 "}\n add %0,%0,%1"                                             \
                 : "+r"(to)                                                                               \
                 : "r"(stride), "t"(c0), "t"(c1), "t"(c2), "t"(c3)                                        \
                 : "memory");                                                                             \
  }

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail

#endif
