// The inner loops of the 4×4 register block (cortex_m/gemm_tile.hpp) on the single-precision FPU of a
// Cortex-M, one for each pair of layouts.
//
// s16 … s31 hold sixteen sums, s0 … s15 two columns of A and two rows of B. Two k take 32
// multiply-accumulates and ten other instructions. Compilers do not use multiple loads.
//
// If a term is vmul and vadd (cortex_m/gemm_terms.hpp), four registers hold products, and half of B or A is
// loaded at a time. An M4 then loads single words in a row: sixteen take 18 cycles instead of 22. With A
// along k, their addresses advance once in four or eight k; twice in four would take as long as multiple
// loads.
#pragma once

#include <attune/kernels/cortex_m/gemm_terms.hpp>

#if ATTUNE_CORTEX_M_FPU

namespace ATTUNE_NAMESPACE::kernels::detail {

// One k of the tile, and two k of columns c and c + 1.
#define ATTUNE_MACS_ROW(c0, c1, c2, c3, a, b0, b1, b2, b3, ...) \
  ATTUNE_MACS(c0, a, b0, c1, a, b1, c2, a, b2, c3, a, b3, __VA_ARGS__)
#define ATTUNE_MACS_TILE(a0, a1, a2, a3, ...)                  \
  ATTUNE_MACS_ROW("s16", "s17", "s18", "s19", a0, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s20", "s21", "s22", "s23", a1, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s24", "s25", "s26", "s27", a2, __VA_ARGS__) \
  ATTUNE_MACS_ROW("s28", "s29", "s30", "s31", a3, __VA_ARGS__)
#define ATTUNE_MACS_COLUMNS(c0, d0, c1, d1, c2, d2, c3, d3)                                                 \
  ATTUNE_MACS(c0, "s0", "s8", d0, "s0", "s10", c1, "s2", "s8", d1, "s2", "s10", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c2, "s4", "s8", d2, "s4", "s10", c3, "s6", "s8", d3, "s6", "s10", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c0, "s1", "s9", d0, "s1", "s11", c1, "s3", "s9", d1, "s3", "s11", "s12", "s13", "s14", "s15") \
  ATTUNE_MACS(c2, "s5", "s9", d2, "s5", "s11", c3, "s7", "s9", d3, "s7", "s11", "s12", "s13", "s14", "s15")

// Loads of an operand stored along k (a register pair holds two k of each of its four lines), or across k
// (four scalars of one k in a row).
#define ATTUNE_LINES_OF_A "add r4,r0,r2\n add r5,r4,r2\n add.w r2,r5,r2\n"
#define ATTUNE_LINES_OF_B "add r8,r1,r3\n add r9,r8,r3\n add.w r3,r9,r3\n"
#define ATTUNE_A_ALONG "vldmia r0!,{d0}\n vldmia r4!,{d1}\n vldmia r5!,{d2}\n vldmia r2!,{d3}\n"
#define ATTUNE_B_ALONG "vldmia r1!,{d4}\n vldmia r8!,{d5}\n vldmia r9!,{d6}\n vldmia r3!,{d7}\n"
#define ATTUNE_A_ACROSS(to) "vldmia r0,{" to "}\n add r0,r0,r2\n"
#define ATTUNE_B_ACROSS(to) "vldmia r1,{" to "}\n add r1,r1,r3\n"
#define ATTUNE_A_ALONG_LAST "vldr s0,[r0]\n vldr s2,[r4]\n vldr s4,[r5]\n vldr s6,[r2]\n"
#define ATTUNE_B_ALONG_LAST(b0, b1, b2, b3) \
  "vldr " b0 ",[r1]\n vldr " b1 ",[r8]\n vldr " b2 ",[r9]\n vldr " b3 ",[r3]\n"
#define ATTUNE_A_ACROSS_LAST "vldmia r0,{s0-s3}\n"
#define ATTUNE_B_ACROSS_LAST "vldmia r1,{s8-s11}\n"

// Adds to the sums of one tile in s16 … s31. Arguments: r0 A, r1 B, r2 and r3 their strides in bytes, r12 the
// number of pairs of k (0 for a depth of one). Clobbers all of them, r4, r5, r8, r9 and s0 … s15; takes no
// stack. tiles_loop calls it with this convention, which is not C++'s. Loops are aligned: a branch to a
// 32-bit instruction across two words costs a cycle.
#define ATTUNE_TILE_FUNCTION(name, lines, begin, pair_of_k, last)                            \
  [[gnu::naked]] inline void name() {                                                        \
    asm(lines begin ".p2align 2\n1: subs r12,r12,#1\n" pair_of_k "bne 1b\n" last "bx lr\n"); \
  }
#define ATTUNE_TILE_FUNCTIONS(name, lines, pair_of_k, last) \
  ATTUNE_TILE_FUNCTION(name, lines, "", pair_of_k, "")      \
  ATTUNE_TILE_FUNCTION(name##_odd, lines, "cmp r12,#0\n beq 2f\n", pair_of_k, "2:\n" last)

#if ATTUNE_SPLIT_VMLA
// Products are in s12 … s15, for B along k in s4 … s7.
#define ATTUNE_MACS_K(a0, a1, a2, a3) \
  ATTUNE_MACS_TILE(a0, a1, a2, a3, "s8", "s9", "s10", "s11", "s12", "s13", "s14", "s15")
#define ATTUNE_MACS_TT(b0, b1, b2, b3) \
  ATTUNE_MACS_TILE("s0", "s1", "s2", "s3", b0, b1, b2, b3, "s4", "s5", "s6", "s7")
#if ATTUNE_LOADS_PIPELINE
// Single loads in a row. `ahead` advances the lines. Every load is at a word boundary, since an M4 pipelines
// 32-bit loads there: 16-bit adds come in pairs.
#define ATTUNE_TWO(to0, to1, line, at0, at1) \
  "vldr " to0 ",[" line ",#" at0 "]\n vldr " to1 ",[" line ",#" at1 "]\n"
#define ATTUNE_FOUR(from, s0, s1, s2, s3) \
  ATTUNE_TWO(s0, s1, from, "0", "4") ATTUNE_TWO(s2, s3, from, "8", "12")
#define ATTUNE_SERIES_OF_A(k0, k1)     \
  ATTUNE_TWO("s0", "s1", "r0", k0, k1) \
  ATTUNE_TWO("s2", "s3", "r4", k0, k1) \
  ATTUNE_TWO("s4", "s5", "r5", k0, k1) \
  ATTUNE_TWO("s6", "s7", "r2", k0, k1)
#define ATTUNE_AHEAD_OF_A(bytes) \
  "adds r0,#" bytes "\n adds r4,#" bytes "\n adds r5,#" bytes "\n adds r2,#" bytes "\n"
#define ATTUNE_AHEAD_OF_B(bytes) \
  "adds r1,#" bytes "\n add r8,r8,#" bytes "\n add r9,r9,#" bytes "\n adds r3,#" bytes "\n"
#define ATTUNE_SERIES_NN(k0, k1, ahead)                                            \
  ATTUNE_SERIES_OF_A(k0, k1)                                                       \
  ATTUNE_FOUR("r1", "s8", "s9", "s10", "s11")                                      \
  "add r1,r1,r3\n" ATTUNE_MACS_K("s0", "s2", "s4", "s6") ATTUNE_B_ACROSS("s8-s11") \
      ahead ATTUNE_MACS_K("s1", "s3", "s5", "s7")
#define ATTUNE_SERIES_NT(k0, k1, ahead)                                       \
  ATTUNE_SERIES_OF_A(k0, k1)                                                  \
  ATTUNE_TWO("s8", "s9", "r1", k0, k1)                                        \
  ATTUNE_TWO("s10", "s11", "r8", k0, k1)                                      \
  ATTUNE_MACS_COLUMNS("s16", "s17", "s20", "s21", "s24", "s25", "s28", "s29") \
  ATTUNE_TWO("s8", "s9", "r9", k0, k1)                                        \
  ATTUNE_TWO("s10", "s11", "r3", k0, k1)                                      \
  ahead ATTUNE_MACS_COLUMNS("s18", "s19", "s22", "s23", "s26", "s27", "s30", "s31")
#define ATTUNE_SERIES_TN                      \
  ATTUNE_FOUR("r0", "s0", "s1", "s2", "s3")   \
  ATTUNE_FOUR("r1", "s8", "s9", "s10", "s11") \
  "add r0,r0,r2\n add r1,r1,r3\n" ATTUNE_MACS_K("s0", "s1", "s2", "s3")
#endif
#define ATTUNE_K_NN(a0, a1, a2, a3) ATTUNE_B_ACROSS("s8-s11") ATTUNE_MACS_K(a0, a1, a2, a3)
#define ATTUNE_K_TN ATTUNE_A_ACROSS("s0-s3") ATTUNE_K_NN("s0", "s1", "s2", "s3")
#define ATTUNE_PAIR_NN ATTUNE_A_ALONG ATTUNE_K_NN("s0", "s2", "s4", "s6") ATTUNE_K_NN("s1", "s3", "s5", "s7")
#define ATTUNE_PAIR_NT                                                                                    \
  ATTUNE_A_ALONG "vldmia r1!,{d4}\n vldmia r8!,{d5}\n" ATTUNE_MACS_COLUMNS(                               \
      "s16", "s17", "s20", "s21", "s24", "s25", "s28",                                                    \
      "s29") "vldmia r9!,{d4}\n vldmia r3!,{d5}\n" ATTUNE_MACS_COLUMNS("s18", "s19", "s22", "s23", "s26", \
                                                                       "s27", "s30", "s31")
#define ATTUNE_PAIR_TN ATTUNE_K_TN ATTUNE_K_TN
#define ATTUNE_PAIR_TT                                                                                       \
  ATTUNE_B_ALONG ATTUNE_A_ACROSS("s0-s3") ATTUNE_MACS_TT("s8", "s10", "s12", "s14") ATTUNE_A_ACROSS("s0-s3") \
      ATTUNE_MACS_TT("s9", "s11", "s13", "s15")
#else
#define ATTUNE_MACS_K(a0, a1, a2, a3) ATTUNE_MACS_TILE(a0, a1, a2, a3, "s8", "s9", "s10", "s11", , , , )
#define ATTUNE_MACS_TT(b0, b1, b2, b3) ATTUNE_MACS_TILE("s0", "s1", "s2", "s3", b0, b1, b2, b3, , , , )
#define ATTUNE_PAIR_NN                                                                                      \
  ATTUNE_A_ALONG ATTUNE_B_ACROSS("s8-s11") ATTUNE_B_ACROSS("s12-s15") ATTUNE_MACS_K("s0", "s2", "s4", "s6") \
      ATTUNE_MACS_TILE("s1", "s3", "s5", "s7", "s12", "s13", "s14", "s15", , , , )
#define ATTUNE_PAIR_NT                                                                                      \
  ATTUNE_A_ALONG ATTUNE_B_ALONG ATTUNE_MACS_TILE("s0", "s2", "s4", "s6", "s8", "s10", "s12", "s14", , , , ) \
      ATTUNE_MACS_TILE("s1", "s3", "s5", "s7", "s9", "s11", "s13", "s15", , , , )
// Additions in pairs: an M7 issues two in one cycle.
#define ATTUNE_PAIR_TN                                                                     \
  "vldmia r0,{s0-s3}\n vldmia r1,{s8-s11}\n add r0,r0,r2\n add r1,r1,r3\n "                \
  "vldmia r0,{s4-s7}\n vldmia r1,{s12-s15}\n add r0,r0,r2\n add r1,r1,r3\n" ATTUNE_MACS_K( \
      "s0", "s1", "s2", "s3") ATTUNE_MACS_TILE("s4", "s5", "s6", "s7", "s12", "s13", "s14", "s15", , , , )
#define ATTUNE_PAIR_TT                                     \
  ATTUNE_A_ACROSS("s0-s3")                                 \
  ATTUNE_A_ACROSS("s4-s7")                                 \
  ATTUNE_B_ALONG ATTUNE_MACS_TT("s8", "s10", "s12", "s14") \
      ATTUNE_MACS_TILE("s4", "s5", "s6", "s7", "s9", "s11", "s13", "s15", , , , )
#endif

ATTUNE_TILE_FUNCTIONS(tile_nn, ATTUNE_LINES_OF_A, ATTUNE_PAIR_NN,
                      ATTUNE_A_ALONG_LAST ATTUNE_B_ACROSS_LAST ATTUNE_MACS_K("s0", "s2", "s4", "s6"))
ATTUNE_TILE_FUNCTIONS(tile_nt, ATTUNE_LINES_OF_A ATTUNE_LINES_OF_B, ATTUNE_PAIR_NT,
                      ATTUNE_A_ALONG_LAST ATTUNE_B_ALONG_LAST("s8", "s9", "s10", "s11")
                          ATTUNE_MACS_K("s0", "s2", "s4", "s6"))
ATTUNE_TILE_FUNCTIONS(tile_tn, , ATTUNE_PAIR_TN,
                      ATTUNE_A_ACROSS_LAST ATTUNE_B_ACROSS_LAST ATTUNE_MACS_K("s0", "s1", "s2", "s3"))
ATTUNE_TILE_FUNCTIONS(tile_tt, ATTUNE_LINES_OF_B, ATTUNE_PAIR_TT,
                      ATTUNE_A_ACROSS_LAST ATTUNE_B_ALONG_LAST("s8", "s10", "s12", "s14")
                          ATTUNE_MACS_TT("s8", "s10", "s12", "s14"))

#if ATTUNE_LOADS_PIPELINE
// As ATTUNE_TILE_FUNCTION, but r12 is the depth less the k of a pass, four or eight. At the end it is the
// number of k that remain, less those of a pass.
#define ATTUNE_PASSES_FUNCTION(name, lines, step, pass)                            \
  [[gnu::naked]] inline void name() {                                              \
    asm(lines ".p2align 2\n1: " pass "subs r12,r12,#" step "\n bhs 1b\n bx lr\n"); \
  }
// The same, and then one k at a time. `prepare` restores what the passes changed.
#define ATTUNE_REST_FUNCTION(name, passes, step, prepare)                                                    \
  [[gnu::naked]] inline void name() {                                                                        \
    asm("mov r9,lr\n bl %c[all]\n add r12,r12,#" step "\n " prepare                                          \
        ".p2align 2\n1: " ATTUNE_A_ALONG_LAST ATTUNE_FOUR("r1", "s8", "s9", "s10", "s11") ATTUNE_AHEAD_OF_A( \
            "4") "add r1,r1,r3\n" ATTUNE_MACS_K("s0", "s2", "s4", "s6") "subs r12,r12,#1\n bne 1b\n bx r9\n" \
        :                                                                                                    \
        : [all] "i"(passes));                                                                                \
  }
ATTUNE_PASSES_FUNCTION(tile_nn_fours, ATTUNE_LINES_OF_A, "4",
                       ATTUNE_SERIES_NN("0", "4", ) ATTUNE_SERIES_NN("8", "12", ATTUNE_AHEAD_OF_A("16")))
ATTUNE_PASSES_FUNCTION(tile_nt_fours, ATTUNE_LINES_OF_A ATTUNE_LINES_OF_B, "4",
                       ATTUNE_SERIES_NT("0", "4", )
                           ATTUNE_SERIES_NT("8", "12", ATTUNE_AHEAD_OF_A("16") ATTUNE_AHEAD_OF_B("16")))
ATTUNE_REST_FUNCTION(tile_nn_fours_rest, tile_nn_fours, "4", )
// r12 is four times the number of threes of k after the first, plus the number of k that the first one lacks.
[[gnu::naked]] inline void tile_tn_threes() {
  asm("ands r4,r12,#3\n beq 1f\n cmp r4,#1\n beq 2f\n b 3f\n"
      ".p2align 2\n1: " ATTUNE_SERIES_TN "2: " ATTUNE_SERIES_TN "3: " ATTUNE_SERIES_TN
      "subs r12,r12,#4\n bpl 1b\n bx lr\n");
}

// Long sums have longer passes, and two series of loads for three k. Products are in s14 and s15 alone. The
// first k is in s0 … s3 (A) and s4 … s7 (B), and so is the third one. The second has B in s8 … s11, and half
// of A at a time in s12 and s13.
#define ATTUNE_TWO_MACS(c0, c1, a, b0, b1)                                                                   \
  "vmul.f32 s14," a "," b0 "\n vmul.f32 s15," a "," b1 "\n vadd.f32 " c0 "," c0 ",s14\n vadd.f32 " c1 "," c1 \
  ",s15\n"
#define ATTUNE_UPPER_MACS(a0, a1, b0, b1, b2, b3) \
  ATTUNE_TWO_MACS("s16", "s17", a0, b0, b1)       \
  ATTUNE_TWO_MACS("s18", "s19", a0, b2, b3)       \
  ATTUNE_TWO_MACS("s20", "s21", a1, b0, b1)       \
  ATTUNE_TWO_MACS("s22", "s23", a1, b2, b3)
#define ATTUNE_LOWER_MACS(a2, a3, b0, b1, b2, b3) \
  ATTUNE_TWO_MACS("s24", "s25", a2, b0, b1)       \
  ATTUNE_TWO_MACS("s26", "s27", a2, b2, b3)       \
  ATTUNE_TWO_MACS("s28", "s29", a3, b0, b1)       \
  ATTUNE_TWO_MACS("s30", "s31", a3, b2, b3)
#define ATTUNE_ONE_K(series)                                   \
  series ATTUNE_UPPER_MACS("s0", "s1", "s4", "s5", "s6", "s7") \
      ATTUNE_LOWER_MACS("s2", "s3", "s4", "s5", "s6", "s7")
#define ATTUNE_THREE_K(first, second)                       \
  ATTUNE_ONE_K(first)                                       \
  ATTUNE_UPPER_MACS("s12", "s13", "s8", "s9", "s10", "s11") \
  second ATTUNE_LOWER_MACS("s12", "s13", "s8", "s9", "s10", "s11") ATTUNE_ONE_K()
#define ATTUNE_A_AT(k) \
  "vldr s0,[r0,#" k "]\n vldr s1,[r4,#" k "]\n vldr s2,[r5,#" k "]\n vldr s3,[r2,#" k "]\n"
#define ATTUNE_UPPER_A_AT(k) "vldr s12,[r0,#" k "]\n vldr s13,[r4,#" k "]\n"
#define ATTUNE_LOWER_A_AT(k) "vldr s12,[r5,#" k "]\n vldr s13,[r2,#" k "]\n"
#define ATTUNE_B_AT(k, s0, s1, s2, s3) \
  "vldr " s0 ",[r1,#" k "]\n vldr " s1 ",[r8,#" k "]\n vldr " s2 ",[r9,#" k "]\n vldr " s3 ",[r3,#" k "]\n"
// Of B across k, r1 points to rows of even k and r8 to those of odd k.
#define ATTUNE_ROWS_OF_B "add r8,r1,r3\n lsl r3,r3,#1\n"
#define ATTUNE_ROWS_AHEAD "add r1,r1,r3\n add r8,r8,r3\n"
#define ATTUNE_FOUR_NN(k0, k1, k2, k3, ahead)                                                     \
  ATTUNE_THREE_K(ATTUNE_A_AT(k0) ATTUNE_FOUR("r1", "s4", "s5", "s6", "s7") ATTUNE_UPPER_A_AT(k1)  \
                     ATTUNE_FOUR("r8", "s8", "s9", "s10", "s11") ATTUNE_ROWS_AHEAD,               \
                 ATTUNE_LOWER_A_AT(k1) ATTUNE_A_AT(k2) ATTUNE_FOUR("r1", "s4", "s5", "s6", "s7")) \
  ATTUNE_ONE_K(ATTUNE_A_AT(k3) ATTUNE_FOUR("r8", "s4", "s5", "s6", "s7") ATTUNE_ROWS_AHEAD ahead)
#define ATTUNE_FOUR_NT(k0, k1, k2, k3, ahead)                                                   \
  ATTUNE_THREE_K(ATTUNE_A_AT(k0) ATTUNE_B_AT(k0, "s4", "s5", "s6", "s7") ATTUNE_UPPER_A_AT(k1)  \
                     ATTUNE_B_AT(k1, "s8", "s9", "s10", "s11"),                                 \
                 ATTUNE_LOWER_A_AT(k1) ATTUNE_A_AT(k2) ATTUNE_B_AT(k2, "s4", "s5", "s6", "s7")) \
  ATTUNE_ONE_K(ATTUNE_A_AT(k3) ATTUNE_B_AT(k3, "s4", "s5", "s6", "s7") ahead)
#define ATTUNE_THREE_TN                                                                               \
  ATTUNE_THREE_K(ATTUNE_FOUR("r0", "s0", "s1", "s2", "s3") ATTUNE_FOUR("r1", "s4", "s5", "s6", "s7")  \
                     ATTUNE_TWO("s12", "s13", "r4", "0", "4")                                         \
                         ATTUNE_FOUR("r5", "s8", "s9", "s10", "s11") "add r0,r0,r2\n add r1,r1,r3\n", \
                 ATTUNE_TWO("s12", "s13", "r4", "8", "12") ATTUNE_FOUR("r8", "s0", "s1", "s2", "s3")  \
                     ATTUNE_FOUR("r9", "s4", "s5", "s6",                                              \
                                 "s7") "add r4,r4,r2\n add r5,r5,r3\n add r8,r8,r2\n add r9,r9,r3\n")
ATTUNE_PASSES_FUNCTION(tile_nn_eights, ATTUNE_LINES_OF_A ATTUNE_ROWS_OF_B, "8",
                       ATTUNE_FOUR_NN("0", "4", "8", "12", )
                           ATTUNE_FOUR_NN("16", "20", "24", "28", ATTUNE_AHEAD_OF_A("32")))
ATTUNE_PASSES_FUNCTION(tile_nt_eights, ATTUNE_LINES_OF_A ATTUNE_LINES_OF_B, "8",
                       ATTUNE_FOUR_NT("0", "4", "8", "12", )
                           ATTUNE_FOUR_NT("16", "20", "24", "28",
                                          ATTUNE_AHEAD_OF_A("32") ATTUNE_AHEAD_OF_B("32")))
ATTUNE_REST_FUNCTION(tile_nn_eights_rest, tile_nn_eights, "8", "lsr r3,r3,#1\n")
// A pass has two threes of k. Each k of a three has pointers of its own. r12 is four times the number of
// threes less one, plus the number of k that remain. These come first. An odd three enters in the middle.
[[gnu::naked]] inline void tile_tn_sixes() {
  asm("ands r4,r12,#3\n beq 2f\n"
      ".p2align 2\n1: " ATTUNE_SERIES_TN
      "subs r4,r4,#1\n bne 1b\n"
      "2: add r4,r0,r2\n add r5,r1,r3\n add r8,r4,r2\n add r9,r5,r3\n add r2,r2,r2,lsl #1\n "
      "add r3,r3,r3,lsl #1\n lsrs r12,r12,#3\n bcc 4f\n"
      ".p2align 2\n3: " ATTUNE_THREE_TN "4: " ATTUNE_THREE_TN "subs r12,r12,#1\n bpl 3b\n bx lr\n");
}
#undef ATTUNE_TWO
#undef ATTUNE_FOUR
#undef ATTUNE_SERIES_OF_A
#undef ATTUNE_SERIES_NN
#undef ATTUNE_SERIES_NT
#undef ATTUNE_SERIES_TN
#undef ATTUNE_AHEAD_OF_A
#undef ATTUNE_AHEAD_OF_B
#undef ATTUNE_PASSES_FUNCTION
#undef ATTUNE_REST_FUNCTION
#undef ATTUNE_TWO_MACS
#undef ATTUNE_UPPER_MACS
#undef ATTUNE_LOWER_MACS
#undef ATTUNE_ONE_K
#undef ATTUNE_THREE_K
#undef ATTUNE_A_AT
#undef ATTUNE_UPPER_A_AT
#undef ATTUNE_LOWER_A_AT
#undef ATTUNE_B_AT
#undef ATTUNE_ROWS_OF_B
#undef ATTUNE_ROWS_AHEAD
#undef ATTUNE_FOUR_NN
#undef ATTUNE_FOUR_NT
#undef ATTUNE_THREE_TN
#endif

#undef ATTUNE_MACS_ROW
#undef ATTUNE_MACS_TILE
#undef ATTUNE_MACS_COLUMNS
#undef ATTUNE_MACS_K
#undef ATTUNE_MACS_TT
#undef ATTUNE_K_NN
#undef ATTUNE_K_TN
#undef ATTUNE_PAIR_NN
#undef ATTUNE_PAIR_NT
#undef ATTUNE_PAIR_TN
#undef ATTUNE_PAIR_TT
#undef ATTUNE_LINES_OF_A
#undef ATTUNE_LINES_OF_B
#undef ATTUNE_A_ALONG
#undef ATTUNE_B_ALONG
#undef ATTUNE_A_ACROSS
#undef ATTUNE_B_ACROSS
#undef ATTUNE_A_ALONG_LAST
#undef ATTUNE_B_ALONG_LAST
#undef ATTUNE_A_ACROSS_LAST
#undef ATTUNE_B_ACROSS_LAST
#undef ATTUNE_TILE_FUNCTION
#undef ATTUNE_TILE_FUNCTIONS

}  // namespace ATTUNE_NAMESPACE::kernels::detail

#endif
