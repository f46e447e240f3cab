// Loads of 8- and 16-bit weights (simd/dequantize.hpp) into FPU registers of a Cortex-M, as assembly. Blocks
// of quantized products consist of them.
#pragma once

#include <attune/kernels/cortex_m/gemm_tile.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/simd/dequantize.hpp>

#if ATTUNE_CORTEX_M_FPU

// Loads two weights from two addresses into s0 and s1, the pair d. Clobbers r7 and r11.
#define ATTUNE_INT8_TWO(d, s0, s1, load0, load1)                                           \
  "ldrsb r7," load0 "\n ldrsb r11," load1 "\n vmov " d ",r7,r11\n vcvt.f32.s32 " s0 "," s0 \
  "\n vcvt.f32.s32 " s1 "," s1 "\n"
#define ATTUNE_BFLOAT16_TWO(d, s0, s1, load0, load1) \
  "ldrh r7," load0 "\n ldrh r11," load1 "\n lsl r7,r7,#16\n lsl r11,r11,#16\n vmov " d ",r7,r11\n"
#define ATTUNE_FLOAT16_TWO(d, s0, s1, load0, load1)                                       \
  "ldrh r7," load0 "\n ldrh r11," load1 "\n vmov " d ",r7,r11\n vcvtb.f32.f16 " s0 "," s0 \
  "\n vcvtb.f32.f16 " s1 "," s1 "\n"

// The same for two neighbors. 16-bit weights take one load of a word, at any alignment.
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

// Loads the four weights at `from`; `move` advances the pointer. Clobbers r5, r7, r10 and r11: each loaded
// value is used after the next load.
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

namespace ATTUNE_NAMESPACE::kernels::detail {

// Assembly blocks for B stored along k, and across k; nullptr if there is none. All tiles but the small one
// have a block for depths divisible by four and one for other depths.
struct QuantizedBlocks {
  void (*along)();
  void (*across)();
};
enum class QuantizedShape { kTile, kTileAndRest, kSmallTile, kPanel, kPanelAndRest };
template <class B, QuantizedShape>
inline constexpr QuantizedBlocks kQuantizedBlocks{nullptr, nullptr};

// The same, for functions named after element type and layout.
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
  return shape.rows >= 4 && shape.rows <= kMaxExtent && shape.cols >= 4 && shape.cols <= kMaxExtent &&
         shape.depth >= 4 && shape.a_col == 1 &&
         ((shape.b_row == 1 && kBlocks.along != nullptr) || (shape.b_col == 1 && kBlocks.across != nullptr));
}

template <class Element>
ATTUNE_INLINE const float* scales_of(const Element*) {
  return nullptr;
}
ATTUNE_INLINE const float* scales_of(const ScaledRows<Int8, float>& b) { return b.scale; }

// An epilogue in two parts, so that many rows share one load of the scales: the scales of columns from `col`
// on, if any, then the rest of the epilogue.
template <class P, class Epilogue>
ATTUNE_INLINE P column_scales(const Epilogue& epilogue, int col) {
  if constexpr (kIsSpecialization<Epilogue, ScaleColumns>) {
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

// Applies the epilogue to four sums of a row of C, in consecutive registers, stores them at `to`, and
// advances `to` by a row. The surrounding loop defines `finish`, the scales q0 … q3, `col` and `stride`
// (bytes).
#define ATTUNE_FINISH_ROW(to, c0, c1, c2, c3)                                   \
  {                                                                             \
    const TileRow sum = kIsSpecialization<Epilogue, ScaleColumns>               \
                            ? TileRow{c0 * q0, c1 * q1, c2 * q2, c3 * q3}       \
                            : TileRow{c0, c1, c2, c3};                          \
    const TileRow done = finish(sum, static_cast<const float*>(to), col);       \
    c0 = done.lane[0], c1 = done.lane[1], c2 = done.lane[2], c3 = done.lane[3]; \
    asm volatile("vstmia %0,{" #c0 "-" #c3 "}\n add %0,%0,%1"                   \
                 : "+r"(to)                                                     \
                 : "r"(stride), "t"(c0), "t"(c1), "t"(c2), "t"(c3)              \
                 : "memory");                                                   \
  }

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
