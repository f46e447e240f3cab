// Products of int8 matrices with MVE (Cortex-M55).
//
// VMLADAVA.S8 adds 16 products to an integer register. A block of 3 rows × 2 columns takes six of them and
// five loads. For three rows or more ops/int8_gemm.hpp transposes a transpose first; for fewer, four k of a
// column are multiplied by one integer of a row.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

#if ATTUNE_MVE

#include <cstdint>

namespace ATTUNE_NAMESPACE::kernels {
namespace detail {

using Int8Term = std::int8_t;
using Int8Sums = std::int32_t[32];

/// A quantized row.
struct Int8Row {
  float scale;
};

/// Rows with quantized copies on the stack, and rows of a block, of the transpose one.
inline constexpr int kInt8MostTerms = 1024, kInt8RowsAtOnce = 3, kInt8TransposedRowsAtOnce = 1;

/// Sums of a row, at the first column of a packet.
template <class P>
ATTUNE_INLINE P int8_sums_as_floats(const std::int32_t* sums, const Int8Row&) {
  if constexpr (kIsScalar<P>) {
    return static_cast<float>(*sums);
  } else {
    return P(vcvtq_f32_s32(vld1q_s32(sums)));
  }
}

// A loop over eight scalars at a time, with a predicated tail; for the transpose, scalars times factors.
// `one` works on q0. `two` works on q0, loaded before, and on four more scalars, and loads the next q0:
// memory, integers and floats have a pipe each, so neighbors that differ overlap.
#define ATTUNE_EACH_OF_ROW(two, one) \
  "lsrs %[turns],%[size],#3\n beq 3f\n subs %[turns],#1\n " ATTUNE_LOAD("q0")                 \
  "wls lr,%[turns],2f\n .balign 4\n"                                                          \
  "1: " two(ATTUNE_LOAD("q0")) "le lr,1b\n"                                                   \
  "2: " two("") "3: and %[turns],%[size],#7\n wlstp.32 lr,%[turns],5f\n"                      \
  "4: " ATTUNE_LOAD("q0") one "letp lr,4b\n5:\n"
#define ATTUNE_LOAD(to) "vldrw.32 " to ",[%[x]],#16\n"
#define ATTUNE_FACTORS(to) "vldrw.32 " to ",[%[factors]],#16\n"

/// The bits of the largest magnitude. A NaN's are larger than all others.
template <bool kFolded>
ATTUNE_INLINE std::uint32_t largest_magnitude_bits(const float* x, [[maybe_unused]] const float* factors,
                                                   int size) {
#define ATTUNE_RAISE "vabs.f32 q0,q0\n vmax.u32 q2,q2,q0\n"
#define ATTUNE_RAISE_TWO(load_next)                                    \
  "vabs.f32 q3,q0\n" ATTUNE_LOAD("q1") "vmax.u32 q2,q2,q3\n" load_next \
                                       "vabs.f32 q1,q1\n"              \
                                       "vmax.u32 q2,q2,q1\n"
#define ATTUNE_RAISE_FOLDED_TWO(load_next)                                   \
  ATTUNE_FACTORS("q4")                                                       \
  "vmul.f32 q3,q0,q4\n" ATTUNE_LOAD("q1") "vabs.f32 q3,q3\n" ATTUNE_FACTORS( \
      "q5") "vmax.u32 q2,q2,q3\n vmul.f32 q1,q1,q5\n" load_next "vabs.f32 q1,q1\n vmax.u32 q2,q2,q1\n"
  std::uint32_t largest = 0, turns;
  if constexpr (kFolded) {
    asm volatile("vmov.i32 q2,#0\n" ATTUNE_EACH_OF_ROW(
                     ATTUNE_RAISE_FOLDED_TWO,
                     ATTUNE_FACTORS("q4") "vmul.f32 q0,q0,q4\n" ATTUNE_RAISE) "vmaxv.u32 %[largest],q2"
                 : [x] "+r"(x), [factors] "+r"(factors), [largest] "+r"(largest), [turns] "=&r"(turns)
                 : [size] "r"(size)
                 : "lr", "cc", "memory", "q0", "q1", "q2", "q3", "q4", "q5");
  } else {
    asm volatile(
        "vmov.i32 q2,#0\n" ATTUNE_EACH_OF_ROW(ATTUNE_RAISE_TWO, ATTUNE_RAISE) "vmaxv.u32 %[largest],q2"
        : [x] "+r"(x), [largest] "+r"(largest), [turns] "=&r"(turns)
        : [size] "r"(size)
        : "lr", "cc", "memory", "q0", "q1", "q2", "q3");
  }
  return largest;
#undef ATTUNE_RAISE
#undef ATTUNE_RAISE_TWO
#undef ATTUNE_RAISE_FOLDED_TWO
}

/// Rounds x · inverse to integers: the low bytes of the sums with 1.5·2²³.
template <bool kFolded>
ATTUNE_INLINE void round_row(const float* x, [[maybe_unused]] const float* factors, int size, float inverse,
                             std::int8_t* to) {
#define ATTUNE_STORE(from) "vstrb.32 " from ",[%[to]],#4\n"
#define ATTUNE_ROUND "vmul.f32 q0,q0,%[inverse]\n vadd.f32 q0,q0,q2\n" ATTUNE_STORE("q0")
#define ATTUNE_ROUND_TWO(load_next)                                                           \
  "vmul.f32 q3,q0,%[inverse]\n" ATTUNE_LOAD("q1") "vadd.f32 q3,q3,q2\n" load_next             \
                                                  "vmul.f32 q1,q1,%[inverse]\n" ATTUNE_STORE( \
                                                      "q3") "vadd.f32 q1,q1,q2\n" ATTUNE_STORE("q1")
#define ATTUNE_ROUND_FOLDED_TWO(load_next)                                              \
  ATTUNE_FACTORS("q4")                                                                  \
  "vmul.f32 q3,q0,q4\n" ATTUNE_LOAD("q1") "vmul.f32 q3,q3,%[inverse]\n" ATTUNE_FACTORS( \
      "q5") "vadd.f32 q3,q3,q2\n" load_next                                             \
            "vmul.f32 q1,q1,q5\n" ATTUNE_STORE(                                         \
                "q3") "vmul.f32 q1,q1,%[inverse]\n vadd.f32 q1,q1,q2\n" ATTUNE_STORE("q1")
  int turns;
  if constexpr (kFolded) {
    asm volatile("vdup.32 q2,%[rounding]\n" ATTUNE_EACH_OF_ROW(
                     ATTUNE_ROUND_FOLDED_TWO, ATTUNE_FACTORS("q4") "vmul.f32 q0,q0,q4\n" ATTUNE_ROUND)
                 : [x] "+r"(x), [factors] "+r"(factors), [to] "+r"(to), [turns] "=&r"(turns)
                 : [size] "r"(size), [inverse] "r"(inverse), [rounding] "r"(0x1.8p23f)
                 : "lr", "cc", "memory", "q0", "q1", "q2", "q3", "q4", "q5");
  } else {
    asm volatile("vdup.32 q2,%[rounding]\n" ATTUNE_EACH_OF_ROW(ATTUNE_ROUND_TWO, ATTUNE_ROUND)
                 : [x] "+r"(x), [to] "+r"(to), [turns] "=&r"(turns)
                 : [size] "r"(size), [inverse] "r"(inverse), [rounding] "r"(0x1.8p23f)
                 : "lr", "cc", "memory", "q0", "q1", "q2", "q3");
  }
#undef ATTUNE_STORE
#undef ATTUNE_ROUND
#undef ATTUNE_ROUND_TWO
#undef ATTUNE_ROUND_FOLDED_TWO
}

#undef ATTUNE_EACH_OF_ROW
#undef ATTUNE_LOAD
#undef ATTUNE_FACTORS

/// Quantizes consecutive scalars; for the transpose, scalars times factors. Returns the scale.
template <bool kFolded>
[[gnu::noinline]] float quantize_together(const float* x, const float* factors, int size, std::int8_t* to) {
  const RowScale row = row_scale(largest_magnitude_bits<kFolded>(x, factors, size));
  round_row<kFolded>(x, factors, size, row.inverse, to);
  return row.scale;
}

/// to[k][j] = from[j][k] for `columns` vectors of `length` integers, `from_step` bytes apart; the results are
/// `to_step` bytes apart, a multiple of 4. Up to three bytes behind a result, and results up to a multiple of
/// 16, are undefined.
[[gnu::noinline]] inline void transpose_integers(const std::int8_t* from, int from_step, int columns,
                                                 int length, std::int8_t* to, int to_step) {
  alignas(16) std::int8_t side_by_side[64];
  const uint32x4_t from0 = vmulq_n_u32(vidupq_n_u32(0, 1), static_cast<std::uint32_t>(to_step)),
                   from4 = vaddq_n_u32(from0, static_cast<std::uint32_t>(4 * to_step)),
                   from8 = vaddq_n_u32(from4, static_cast<std::uint32_t>(4 * to_step)),
                   from12 = vaddq_n_u32(from8, static_cast<std::uint32_t>(4 * to_step));
  for (int k = 0; k < length; k += 16) {
    // Four vectors side by side, `turns` times.
    const auto fours = [&](int j, int turns) ATTUNE_INLINE_LAMBDA {
      const int last = columns - 1 - j;
      const std::int8_t *x0 = from + j * from_step + k, *x1 = x0 + smaller(1, last) * from_step,
                        *x2 = x0 + smaller(2, last) * from_step, *x3 = x0 + smaller(3, last) * from_step;
      std::int8_t* result = to + k * to_step + j;
      asm volatile(
          "vctp.8 %[left]\n dls lr,%[turns]\n .balign 4\n"
          "1: vpstttt\n vldrbt.u8 q0,[%[x0]]\n vldrbt.u8 q1,[%[x1]]\n vldrbt.u8 q2,[%[x2]]\n"
          "vldrbt.u8 q3,[%[x3]]\n add %[x0],%[step]\n vst40.8 {q0,q1,q2,q3},[%[aside]]\n add %[x1],%[step]\n"
          "vst41.8 {q0,q1,q2,q3},[%[aside]]\n add %[x2],%[step]\n vst42.8 {q0,q1,q2,q3},[%[aside]]\n"
          "add %[x3],%[step]\n vst43.8 {q0,q1,q2,q3},[%[aside]]\n vldrw.32 q0,[%[aside]]\n"
          "vldrw.32 q1,[%[aside],#16]\n vldrw.32 q2,[%[aside],#32]\n vldrw.32 q3,[%[aside],#48]\n"
          "vstrw.32 q0,[%[to],%q[from0]]\n vstrw.32 q1,[%[to],%q[from4]]\n vstrw.32 q2,[%[to],%q[from8]]\n"
          "vstrw.32 q3,[%[to],%q[from12]]\n adds %[to],#4\n le lr,1b"
          : [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2), [x3] "+r"(x3), [to] "+r"(result)
          : [step] "r"(4 * from_step), [aside] "r"(side_by_side), [left] "r"(length - k), [turns] "r"(turns),
            [from0] "w"(from0), [from4] "w"(from4), [from8] "w"(from8), [from12] "w"(from12)
          : "lr", "cc", "memory", "q0", "q1", "q2", "q3");  // and predicates, which no call keeps
    };
    if (columns >= 4) fours(0, columns / 4);
    if (columns % 4 != 0) fours(columns / 4 * 4, 1);
  }
}

/// Rounds `count` vectors of `length` scalars, `stride` apart, into the first rows of a packed matrix. Bytes
/// of columns up to a multiple of 16 are undefined.
template <class Packed>
[[gnu::noinline]] void pack_rows(const float* x, int stride, int count, int length, const float* inverses,
                                 std::int8_t* bytes) {
  constexpr int kWidth = (Packed::kCols + 15) / 16 * 16, kRows = 16;  // at a time
  alignas(16) std::int8_t integers[std::size_t{kRows * kWidth}];
  for (int row = 0; row < count; row += kRows) {
    const int some = smaller(kRows, count - row);
    for (int r = 0; r < some; ++r) {
      round_row<false>(x + (row + r) * stride, nullptr, length, inverses[row + r], integers + r * kWidth);
    }
    transpose_integers(integers, kWidth, some, length, bytes + Packed::place(row, 0), Packed::place(0, 1));
  }
}

// Quantizes the first scalars of a row of A; for the transpose, scalars times factors. Zeros follow, to
// kLength and beyond.
template <bool kFolded, int kLength, int kStep>
ATTUNE_INLINE Int8Row quantize_int8_row(const float* x, const float* factors, int count, std::int8_t* to) {
  for (int i = count; i < (kLength + 15) / 16 * 16; ++i) to[i] = 0;
  if constexpr (kStep == 1) {
    return {quantize_together<kFolded>(x, factors, count, to)};
  } else {
    return {quantize_row(
        count,
        [&](int i)
            ATTUNE_INLINE_LAMBDA { return kFolded ? multiply(x[i * kStep], factors[i]) : x[i * kStep]; },
        to)};
  }
}

/// Quantizes vectors of `count` scalars, at most four of them, that lie side by side: columns of a matrix
/// whose rows are `step` apart. For the transpose, scalars times factors. Zeros follow each, up to `to_step`.
template <bool kFolded>
[[gnu::noinline]] void quantize_side_by_side(const float* x, int step, int rows, const float* factors,
                                             int count, std::int8_t* to, int to_step, Int8Row* scales) {
  const mve_pred16_t used = vctp32q(static_cast<std::uint32_t>(rows));
  const auto scalars = [&](int i) ATTUNE_INLINE_LAMBDA {
    const float32x4_t some = vldrwq_z_f32(x + i * step, used);
    return kFolded ? vmulq_n_f32(some, factors[i]) : some;
  };
  uint32x4_t most = vdupq_n_u32(0);
  for (int i = 0; i < count; ++i) most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(scalars(i))));
  std::uint32_t largest[4];
  vst1q_u32(largest, most);
  float inverses[4] = {};
  for (int r = 0; r < rows; ++r) {
    const RowScale row = row_scale(largest[r]);
    inverses[r] = row.inverse;
    scales[r] = {row.scale};
  }
  const float32x4_t inverse = vld1q_f32(inverses), rounding = vdupq_n_f32(0x1.8p23f);
  const uint32x4_t to_rows = vmulq_n_u32(vidupq_n_u32(0, 1), static_cast<std::uint32_t>(to_step));
  for (int i = 0; i < count; ++i) {
    const float32x4_t rounded = vaddq_f32(vmulq_f32(scalars(i), inverse), rounding);
    vstrbq_scatter_offset_p_s32(to + i, to_rows, vreinterpretq_s32_f32(rounded), used);
  }
  for (int r = 0; r < rows; ++r) {
    for (int i = count; i < to_step; ++i) to[r * to_step + i] = 0;
  }
}

/// Sums for three rows of q and columns up to `end`, an even number, two at a time: five loads for six sums.
/// Sums are in even registers, the only ones that the instruction accepts. The last loads of a row and of a
/// first column read into the next one.
[[gnu::naked]] inline void int8_three_rows(const std::int8_t*, const std::int8_t*, Int8Sums*, int,
                                           const std::int8_t*) {
#define ATTUNE_SIX_SUMS(sum)                                                              \
  sum " r0,q0,q3\n vldrb.u8 q1,[r3],#16\n " sum " r2,q1,q3\n vldrb.u8 q2,[r5],#16\n " sum \
      " r4,q2,q3\n"                                                                       \
      "vldrb.u8 q4,[r9],#16\n " sum " r6,q0,q4\n vldrb.u8 q3,[r7],#16\n " sum             \
      " r8,q1,q4\n vldrb.u8 q0,[r1],#16\n " sum " r10,q2,q4\n"
  asm("push {r4-r11,lr}\n vpush {d8-d10}\n ldr r4,[sp,#60]\n lsrs r5,r3,#4\n subs r5,#1\n vmov s20,r4\n"
      "vmov s21,r5\n mov r11,r2\n mov r12,r3\n mov r7,r1\n add r9,r7,r12\n mov r1,r0\n add r3,r1,r12\n"
      "add r5,r3,r12\n"
      "2: vldrb.u8 q0,[r1],#16\n vldrb.u8 q3,[r7],#16\n vmov lr,s21\n" ATTUNE_SIX_SUMS(
          "vmladav.s8") "wls lr,lr,3f\n .balign 4\n"
      "1:\n" ATTUNE_SIX_SUMS("vmladava.s8") "le lr,1b\n"
      "3: strd r2,r8,[r11,#128]\n strd r4,r10,[r11,#256]\n strd r0,r6,[r11],#8\n vmov r0,s20\n"
      "subs r3,r3,r12\n mov r7,r9\n sub r5,r5,r12\n add r9,r9,r12\n sub r1,r3,r12\n cmp r7,r0\n bne 2b\n"
      "vpop {d8-d10}\n pop {r4-r11,pc}\n");
#undef ATTUNE_SIX_SUMS
}

/// Sums for one row and columns up to `end`, four at a time: five loads for four sums. The last loads read
/// behind the row, and from a first column into the next one.
[[gnu::naked]] inline void int8_one_row(const std::int8_t*, const std::int8_t*, std::int32_t*, int,
                                        const std::int8_t*) {
  asm("push {r4-r11,lr}\n vpush {d8-d10}\n ldr r4,[sp,#60]\n vmov s20,r4\n lsrs r8,r3,#4\n mov r10,r0\n"
      "mov r11,r2\n mov r12,r3\n mov r3,r1\n"
      "2: add r5,r3,r12\n add r7,r5,r12\n add r9,r7,r12\n mov r1,r10\n dls lr,r8\n vldrb.u8 q0,[r1],#16\n"
      "movs r0,#0\n movs r2,#0\n vldrb.u8 q1,[r3],#16\n movs r4,#0\n movs r6,#0\n .balign 4\n"
      "1: vmladava.s8 r0,q0,q1\n vldrb.u8 q2,[r5],#16\n vmladava.s8 r2,q0,q2\n vldrb.u8 q3,[r7],#16\n"
      "vmladava.s8 r4,q0,q3\n vldrb.u8 q4,[r9],#16\n vldrb.u8 q1,[r3],#16\n vmladava.s8 r6,q0,q4\n"
      "vldrb.u8 q0,[r1],#16\n le lr,1b\n"
      "strd r0,r2,[r11],#8\n strd r4,r6,[r11],#8\n mov r3,r9\n vmov r0,s20\n cmp r3,r0\n bne 2b\n"
      "vpop {d8-d10}\n pop {r4-r11,pc}\n");
}

// Sums for `count` columns.
template <int kRows, int kTerms>
ATTUNE_INLINE void int8_sums(const std::int8_t* q, const std::int8_t* weights, int count, Int8Sums* sums) {
  int first = 0;
  if constexpr (kRows == 3) {
    first = count & ~1;
    if (first != 0) int8_three_rows(q, weights, sums, kTerms, weights + first * kTerms);
  } else {
    first = count & ~3;
    if (first != 0) int8_one_row(q, weights, sums[0], kTerms, weights + first * kTerms);
  }
  for (; first < count; ++first) {
    for (int r = 0; r < kRows; ++r) {
      std::int32_t sum = 0;
      for (int k = 0; k < kTerms; k += 16) {
        sum = vmladavaq_s8(sum, vld1q_s8(q + r * kTerms + k), vld1q_s8(weights + first * kTerms + k));
      }
      sums[r][first] = sum;
    }
  }
}

// Sums for a row and 16 k, over columns of W of `column` bytes each.
template <int, int kTerms>
ATTUNE_INLINE void int8_transposed_sums(const std::int8_t* q, const std::int8_t* weights, int column,
                                        int columns, Int8Sums* sums) {
  int32x4_t sum[4];
  ATTUNE_UNROLL for (int32x4_t& four : sum) four = vdupq_n_s32(0);
  std::int32_t x;
  int32x4_t w0, w1, w2, w3;
  asm volatile(
      "dls lr,%[columns]\n .balign 4\n"
      "1: ldrsb %[x],[%[q]],#1\n vldrb.s32 %q[w0],[%[from]]\n vldrb.s32 %q[w1],[%[from],#4]\n"
      "vmla.s32 %q[s0],%q[w0],%[x]\n vldrb.s32 %q[w2],[%[from],#8]\n vmla.s32 %q[s1],%q[w1],%[x]\n"
      "vldrb.s32 %q[w3],[%[from],#12]\n vmla.s32 %q[s2],%q[w2],%[x]\n add %[from],%[column]\n"
      "vmla.s32 %q[s3],%q[w3],%[x]\n le lr,1b"
      : [q] "+r"(q), [from] "+r"(weights), [s0] "+w"(sum[0]), [s1] "+w"(sum[1]), [s2] "+w"(sum[2]),
        [s3] "+w"(sum[3]), [x] "=&r"(x), [w0] "=&w"(w0), [w1] "=&w"(w1), [w2] "=&w"(w2), [w3] "=&w"(w3)
      : [columns] "r"(columns), [column] "r"(column)
      : "lr", "cc", "memory");
  ATTUNE_UNROLL for (int j = 0; j < 4; ++j) vst1q_s32(sums[0] + 4 * j, sum[j]);
}

}  // namespace detail
}  // namespace ATTUNE_NAMESPACE::kernels

#endif
