// Register blocks of products on a Cortex-M55's vector unit (MVE, Helium), in assembly with low-overhead
// loops.
//
// MVE has eight vector registers and multiplies a vector by a scalar in an integer register. A block is some
// rows of A times one or two vectors of B. Three blocks use all eight registers:
//   wide     3 rows × 8 columns: loads two k of each row of A at a time; B row-major
//   along    5 rows × 4 columns: the same A; B row-major, or transposed and gathered
//   across   6 rows × 4 columns: A transposed, with all rows of one k in a multiple load; either B
// Every sum adds its terms in rising k from +0, as in the portable block. The assembler's .if covers all
// sizes with one text.
#pragma once

#include <utility>

#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

#if ATTUNE_MVE && ATTUNE_FUSED

namespace ATTUNE_NAMESPACE::kernels::detail {

inline constexpr int kWideRows = 3, kAlongRows = 5, kAcrossRows = 6, kMveLanes = 4;

#define ATTUNE_IF(condition, text) ".if " condition "\n " text ".endif\n "
// By r4, and not by an operand, for which GCC may have no register.
#define ATTUNE_LOOP_OF_PAIRS "movw r4,#%c[pairs]\n dls lr,r4\n1:\n "
#define ATTUNE_ROW(row, text) ATTUNE_IF("%c[rows]>" row, text)
#define ATTUNE_MAC(row, sum, vector, scalar) ATTUNE_ROW(row, "vfma.f32 " sum "," vector "," scalar "\n ")
#define ATTUNE_LAST_VECTOR_AND_ADVANCE(to)                                 \
  ATTUNE_IF("%c[b_bytes]<=508", "vldrw.u32 " to ",[%[b]],#%c[b_bytes]\n ") \
  ATTUNE_IF("%c[b_bytes]>508", "vldrw.u32 " to ",[%[b]]\n add %[b],%[b],%[b_row]\n ")
// Loads a vector of B: gathered at the addresses in q7, which advance, or from a row.
#define ATTUNE_VECTOR_OF_B(to)                            \
  ATTUNE_IF("%c[gather]", "vldrw.u32 " to ",[q7,#4]!\n ") \
  ATTUNE_IF("!%c[gather]", ATTUNE_LAST_VECTOR_AND_ADVANCE(to))
#define ATTUNE_CLEAR_SUMS              \
  ATTUNE_ROW("0", "vmov.i32 q0,#0\n ") \
  ATTUNE_ROW("1", "vmov.i32 q1,#0\n ") \
  ATTUNE_ROW("2", "vmov.i32 q2,#0\n ") \
  ATTUNE_ROW("3", "vmov.i32 q3,#0\n ") \
  ATTUNE_ROW("4", "vmov.i32 q4,#0\n ") ATTUNE_ROW("5", "vmov.i32 q5,#0\n ")

/// sum[i][0 … 1] = Σ a(i, k)·b(k, 0 … 7).
template <int kRows, int kDepth, int kARow, int kBRow>
ATTUNE_INLINE void wide_sums(const float* a, const float* b, float32x4_t (&sum)[std::size_t{kRows}][2]) {
  const float *a0 = a, *a1 = a + (kRows > 1 ? kARow : 0), *a2 = a + (kRows > 2 ? 2 * kARow : 0);
  register float32x4_t q0 asm("q0"), q1 asm("q1"), q2 asm("q2"), q3 asm("q3"), q4 asm("q4"), q5 asm("q5");
#define ATTUNE_LOAD_B "vldrw.u32 q7,[%[b],#16]\n " ATTUNE_LAST_VECTOR_AND_ADVANCE("q6")
#define ATTUNE_MACS(row, left, right, scalar) \
  ATTUNE_MAC(row, left, "q6", scalar) ATTUNE_MAC(row, right, "q7", scalar)
  asm volatile(
      ATTUNE_ROW("0", "vmov.i32 q0,#0\n vmov.i32 q1,#0\n ") ATTUNE_ROW(
          "1", "vmov.i32 q2,#0\n vmov.i32 q3,#0\n ") ATTUNE_ROW("2", "vmov.i32 q4,#0\n vmov.i32 q5,#0\n ")
          ATTUNE_IF("%c[depth]>1", ATTUNE_LOOP_OF_PAIRS ATTUNE_LOAD_B
                    "ldrd r4,r5,[%[a0]],#8\n " ATTUNE_ROW("1", "ldrd r6,r8,[%[a1]],#8\n ")
                        ATTUNE_ROW("2", "ldrd r9,r10,[%[a2]],#8\n ") ATTUNE_MACS("0", "q0", "q1", "r4")
                            ATTUNE_MACS("1", "q2", "q3", "r6") ATTUNE_MACS("2", "q4", "q5", "r9")
                                ATTUNE_LOAD_B ATTUNE_MACS("0", "q0", "q1", "r5") ATTUNE_MACS(
                                    "1", "q2", "q3", "r8") ATTUNE_MACS("2", "q4", "q5", "r10") "le lr,1b\n ")
              ATTUNE_IF("%c[depth]&1",
                        ATTUNE_LOAD_B "ldr r4,[%[a0]]\n " ATTUNE_ROW("1", "ldr r6,[%[a1]]\n ")
                            ATTUNE_ROW("2", "ldr r9,[%[a2]]\n ") ATTUNE_MACS("0", "q0", "q1", "r4")
                                ATTUNE_MACS("1", "q2", "q3", "r6") ATTUNE_MACS("2", "q4", "q5", "r9"))
      : "=w"(q0), "=w"(q1), "=w"(q2), "=w"(q3), "=w"(q4),
        "=w"(q5), [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [b] "+r"(b)
      : [pairs] "i"(kDepth / 2), [rows] "i"(kRows), [depth] "i"(kDepth), [b_bytes] "i"(4 * kBRow),
        [b_row] "rI"(4 * kBRow)
      : "r4", "r5", "r6", "r8", "r9", "r10", "lr", "q6", "q7", "memory");
#undef ATTUNE_LOAD_B
#undef ATTUNE_MACS
  const float32x4_t all[kWideRows][2] = {{q0, q1}, {q2, q3}, {q4, q5}};
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) sum[i][0] = all[i][0], sum[i][1] = all[i][1];
}

// The addresses of b(0, 0 … 3), less one scalar.
template <int kBCol>
ATTUNE_INLINE uint32x4_t gather_addresses(const float* b) {
  const auto first = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(b)) - 4;
  return vmlaq_n_u32(vdupq_n_u32(first), vidupq_n_u32(0, 1), 4 * kBCol);
}

/// sum[i] = Σ a(i, k)·b(k, 0 … 3).
template <int kRows, int kDepth, int kARow, int kBRow, int kBCol>
ATTUNE_INLINE void along_sums(const float* a, const float* b, float32x4_t (&sum)[std::size_t{kRows}]) {
  const auto row_of_a = [a](int row) { return a + (row < kRows ? row * kARow : 0); };
  const float *a0 = a, *a1 = row_of_a(1), *a2 = row_of_a(2), *a3 = row_of_a(3), *a4 = row_of_a(4);
  register uint32x4_t q7 asm("q7");
  if constexpr (kBCol != 1) q7 = gather_addresses<kBCol>(b);
  register float32x4_t q0 asm("q0"), q1 asm("q1"), q2 asm("q2"), q3 asm("q3"), q4 asm("q4");
#define ATTUNE_PAIR(row, from, sum) \
  ATTUNE_ROW(row, "ldrd r4,r5,[" from "],#8\n vfma.f32 " sum ",q5,r4\n vfma.f32 " sum ",q6,r5\n ")
#define ATTUNE_SINGLE(row, from, sum) ATTUNE_ROW(row, "ldr r4,[" from "]\n vfma.f32 " sum ",q5,r4\n ")
  asm volatile(
      ATTUNE_CLEAR_SUMS ATTUNE_IF("%c[depth]>1",
                                  ATTUNE_LOOP_OF_PAIRS ATTUNE_VECTOR_OF_B("q5") ATTUNE_VECTOR_OF_B("q6")
                                      ATTUNE_PAIR("0", "%[a0]", "q0") ATTUNE_PAIR("1", "%[a1]", "q1")
                                          ATTUNE_PAIR("2", "%[a2]", "q2") ATTUNE_PAIR("3", "%[a3]", "q3")
                                              ATTUNE_PAIR("4", "%[a4]", "q4") "le lr,1b\n ")
          ATTUNE_IF("%c[depth]&1", ATTUNE_VECTOR_OF_B("q5") ATTUNE_SINGLE("0", "%[a0]", "q0") ATTUNE_SINGLE(
                                       "1", "%[a1]", "q1") ATTUNE_SINGLE("2", "%[a2]", "q2")
                                       ATTUNE_SINGLE("3", "%[a3]", "q3") ATTUNE_SINGLE("4", "%[a4]", "q4"))
      : "=w"(q0), "=w"(q1), "=w"(q2), "=w"(q3), "=w"(q4),
        "+w"(q7), [a0] "+r"(a0), [a1] "+r"(a1), [a2] "+r"(a2), [a3] "+r"(a3), [a4] "+r"(a4), [b] "+r"(b)
      : [pairs] "i"(kDepth / 2), [rows] "i"(kRows), [depth] "i"(kDepth), [gather] "i"(kBCol != 1),
        [b_bytes] "i"(4 * kBRow), [b_row] "rI"(4 * kBRow)
      : "r4", "r5", "lr", "q5", "q6", "memory");
#undef ATTUNE_PAIR
#undef ATTUNE_SINGLE
  const float32x4_t all[kAlongRows] = {q0, q1, q2, q3, q4};
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) sum[i] = all[i];
}

/// sum[i] = Σ a(i, k)·b(k, 0 … 3), with consecutive a(0 … kRows − 1, k).
template <int kRows, int kDepth, int kACol, int kBRow, int kBCol>
ATTUNE_INLINE void across_sums(const float* a, const float* b, float32x4_t (&sum)[std::size_t{kRows}]) {
  register uint32x4_t q7 asm("q7");
  if constexpr (kBCol != 1) q7 = gather_addresses<kBCol>(b);
  register float32x4_t q0 asm("q0"), q1 asm("q1"), q2 asm("q2"), q3 asm("q3"), q4 asm("q4"), q5 asm("q5");
#define ATTUNE_LOAD_A                                        \
  ATTUNE_IF("%c[rows]==1", "ldr r4,[%[a]]\n ")               \
  ATTUNE_IF("%c[rows]==2", "ldmia %[a],{r4,r5}\n ")          \
  ATTUNE_IF("%c[rows]==3", "ldmia %[a],{r4,r5,r6}\n ")       \
  ATTUNE_IF("%c[rows]==4", "ldmia %[a],{r4,r5,r6,r8}\n ")    \
  ATTUNE_IF("%c[rows]==5", "ldmia %[a],{r4,r5,r6,r8,r9}\n ") \
  ATTUNE_IF("%c[rows]==6", "ldmia %[a],{r4,r5,r6,r8,r9,r10}\n ") "add %[a],%[a],%[a_col]\n "
#define ATTUNE_STEP                                                                                         \
  ATTUNE_VECTOR_OF_B("q6")                                                                                  \
  ATTUNE_LOAD_A ATTUNE_MAC("0", "q0", "q6", "r4") ATTUNE_MAC("1", "q1", "q6", "r5")                         \
      ATTUNE_MAC("2", "q2", "q6", "r6") ATTUNE_MAC("3", "q3", "q6", "r8") ATTUNE_MAC("4", "q4", "q6", "r9") \
          ATTUNE_MAC("5", "q5", "q6", "r10")
  asm volatile(
      ATTUNE_CLEAR_SUMS ATTUNE_IF("%c[depth]>1", ATTUNE_LOOP_OF_PAIRS ATTUNE_STEP ATTUNE_STEP "le lr,1b\n ")
          ATTUNE_IF("%c[depth]&1", ATTUNE_STEP)
      : "=w"(q0), "=w"(q1), "=w"(q2), "=w"(q3), "=w"(q4), "=w"(q5), "+w"(q7), [a] "+r"(a), [b] "+r"(b)
      : [pairs] "i"(kDepth / 2), [rows] "i"(kRows), [depth] "i"(kDepth), [gather] "i"(kBCol != 1),
        [b_bytes] "i"(4 * kBRow), [b_row] "rI"(4 * kBRow), [a_col] "rI"(4 * kACol)
      : "r4", "r5", "r6", "r8", "r9", "r10", "lr", "q6", "memory");
#undef ATTUNE_LOAD_A
#undef ATTUNE_STEP
  const float32x4_t all[kAcrossRows] = {q0, q1, q2, q3, q4, q5};
  ATTUNE_UNROLL for (int i = 0; i < kRows; ++i) sum[i] = all[i];
}

#undef ATTUNE_IF
#undef ATTUNE_LOOP_OF_PAIRS
#undef ATTUNE_ROW
#undef ATTUNE_MAC
#undef ATTUNE_LAST_VECTOR_AND_ADVANCE
#undef ATTUNE_VECTOR_OF_B
#undef ATTUNE_CLEAR_SUMS

constexpr bool fits_mve(const GemmShape& shape) {
  return kManyOperands && shape.cols >= kMveLanes && (shape.a_row == 1 || shape.a_col == 1) &&
         (shape.b_row == 1 || shape.b_col == 1);
}

// One block of rows, with the epilogue.
template <bool kWide, GemmShape shape, class Epilogue>
ATTUNE_INLINE void mve_block(const float* a, const float* b, float* c, int col, const Epilogue& epilogue) {
  const auto finish = [&](const float32x4_t& sum, int i, int j) ATTUNE_INLINE_LAMBDA {
    float* to = c + i * shape.c_row + j;
    store(to, epilogue(sum, static_cast<const float*>(to), col + j));
  };
  if constexpr (kWide) {
    float32x4_t sum[std::size_t{shape.rows}][2];
    wide_sums<shape.rows, shape.depth, shape.a_row, shape.b_row>(a, b, sum);
    ATTUNE_UNROLL for (int i = 0; i < shape.rows; ++i) finish(sum[i][0], i, 0),
        finish(sum[i][1], i, kMveLanes);
  } else {
    float32x4_t sum[std::size_t{shape.rows}];
    if constexpr (shape.a_col == 1) {
      along_sums<shape.rows, shape.depth, shape.a_row, shape.b_row, shape.b_col>(a, b, sum);
    } else {
      across_sums<shape.rows, shape.depth, shape.a_col, shape.b_row, shape.b_col>(a, b, sum);
    }
    ATTUNE_UNROLL for (int i = 0; i < shape.rows; ++i) finish(sum[i], i, 0);
  }
}

/// C = epilogue(A·B) for the columns in whole vectors.
template <GemmShape shape, class Epilogue>
ATTUNE_INLINE void mve_gemm(const float* a, const float* b, float* c, const Epilogue& epilogue) {
  const auto columns = [&]<bool kWide, int kFrom, int kTo>() ATTUNE_INLINE_LAMBDA {
    constexpr int kStep = kWide ? 2 * kMveLanes : kMveLanes;
    constexpr int kBlock = kWide ? kWideRows : shape.a_col == 1 ? kAlongRows : kAcrossRows;
    constexpr int kWhole = shape.rows / kBlock * kBlock;
    for (int j = kFrom; j < kTo; j += kStep) {
      for (int i = 0; i < kWhole; i += kBlock) {
        mve_block<kWide, shape.with_rows(kBlock)>(a + i * shape.a_row, b + j * shape.b_col,
                                                  c + i * shape.c_row + j, j, epilogue);
      }
      if constexpr (kWhole < shape.rows) {
        mve_block<kWide, shape.with_rows(shape.rows - kWhole)>(a + kWhole * shape.a_row, b + j * shape.b_col,
                                                               c + kWhole * shape.c_row + j, j, epilogue);
      }
    }
  };
  constexpr int kWideCols =
      shape.a_col == 1 && shape.b_col == 1 ? shape.cols / (2 * kMveLanes) * (2 * kMveLanes) : 0;
  constexpr int kVectorCols = shape.cols / kMveLanes * kMveLanes;
  if constexpr (kWideCols > 0) columns.template operator()<true, 0, kWideCols>();
  if constexpr (kWideCols < kVectorCols) columns.template operator()<false, kWideCols, kVectorCols>();
}

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
