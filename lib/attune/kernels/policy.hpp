// Decisions for every kernel: the arithmetic policy, and the processor units in use.
//
// `unfused` rounds a multiply-accumulate twice and exists on every target. `fused` rounds once and needs an
// FMA. `unfused` is the reproducible choice, so vector units that treat some numbers differently (MVE, 32-bit
// NEON) are off in it.
#pragma once

#if __cplusplus <= 201703L
#error "attune needs C++20: compile with -std=c++20 (CMake does where a target links attune::attune)"
#include <attune_ends_here_without_cpp20>  // a missing file: the error at which compilers stop
#endif

#include <attune/kernels/version.hpp>

#if !defined(ATTUNE_FUSED)
#define ATTUNE_FUSED 0
#endif
#if !defined(ATTUNE_PORTABLE_KERNELS)
#define ATTUNE_PORTABLE_KERNELS 0  // 1: no assembly, for comparison with the portable code
#endif
// Cortex-M55's vector unit, which flushes subnormals to zero. In fused arithmetic, ATTUNE_MVE=0 gives the
// bits of every other target. In unfused arithmetic, ATTUNE_MVE=1 turns the unit on.
#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 2) || ATTUNE_PORTABLE_KERNELS
#undef ATTUNE_MVE
#define ATTUNE_MVE 0
#elif !defined(ATTUNE_MVE)
#define ATTUNE_MVE ATTUNE_FUSED
#endif

// NEON of 32-bit Arm also flushes subnormals, so it follows the same rule. 64-bit NEON does not, and is
// always used.
#if !defined(__ARM_NEON) || defined(__aarch64__)
#undef ATTUNE_NEON
#define ATTUNE_NEON 0
#elif !defined(ATTUNE_NEON)
#define ATTUNE_NEON ATTUNE_FUSED
#endif

#if !defined(ATTUNE_BLAS)
#define ATTUNE_BLAS 0  // 1: large products use the host's CBLAS (kernels/portable/blas.hpp)
#endif

#if ATTUNE_FUSED && ATTUNE_BLAS
#define ATTUNE_POLICY fused_blas
#elif ATTUNE_BLAS
#define ATTUNE_POLICY unfused_blas
#elif ATTUNE_FUSED && ATTUNE_MVE
#define ATTUNE_POLICY fused_mve
#elif ATTUNE_FUSED && ATTUNE_NEON
#define ATTUNE_POLICY fused_neon
#elif ATTUNE_FUSED
#define ATTUNE_POLICY fused
#elif ATTUNE_MVE
#define ATTUNE_POLICY unfused_mve
#elif ATTUNE_NEON
#define ATTUNE_POLICY unfused_neon
#else
#define ATTUNE_POLICY unfused
#endif

// The instruction set of this file: a level of the x86-64 psABI, or an extension that other files of the same
// program may lack. Empty for the baseline. attune_add_dispatched defines it as empty, because there no file
// sees another file's code.
#if !defined(ATTUNE_INSTRUCTION_SET)
#if defined(__AVX512VNNI__)
#define ATTUNE_INSTRUCTION_SET _avx512vnni
#elif defined(__AVX512F__)
#define ATTUNE_INSTRUCTION_SET _avx512
#elif defined(__AVX2__)
#define ATTUNE_INSTRUCTION_SET _avx2
#elif defined(__AVX__)
#define ATTUNE_INSTRUCTION_SET _avx
#elif defined(__SSE4_1__)
#define ATTUNE_INSTRUCTION_SET _sse4
#elif defined(__SSE3__)
#define ATTUNE_INSTRUCTION_SET _sse3
#elif defined(__ARM_FEATURE_SVE)
#define ATTUNE_INSTRUCTION_SET _sve
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#define ATTUNE_INSTRUCTION_SET _i8mm
#elif defined(__ARM_FEATURE_DOTPROD)
#define ATTUNE_INSTRUCTION_SET _dotprod
#elif defined(__riscv_vector)
#define ATTUNE_INSTRUCTION_SET _rvv
#else
#define ATTUNE_INSTRUCTION_SET
#endif
#endif

// Whether the compiler optimizes for size (-Os, -Oz): smaller loops then take the place of faster ones.
#if defined(__OPTIMIZE_SIZE__)
#define ATTUNE_FOR_SIZE 1
#else
#define ATTUNE_FOR_SIZE 0
#endif

#if !defined(ATTUNE_CHECKED)
#define ATTUNE_CHECKED 0  // 1: run-time assertions (kernels/checked.hpp)
#endif
#if ATTUNE_CHECKED
#define ATTUNE_CHECKS _checked
#else
#define ATTUNE_CHECKS
#endif

// Part of every symbol. Code with different policies, instruction sets, checks, or versions (except patches)
// never links into one function.
#define ATTUNE_TAG_OF(major, minor, policy, instruction_set, checks) \
  v##major##_##minor##_##policy##instruction_set##checks
#define ATTUNE_TAG(major, minor, policy, instruction_set, checks) \
  ATTUNE_TAG_OF(major, minor, policy, instruction_set, checks)
// The library's namespace with this tag. The macro is one name, so that code browsers find the definitions
// inside.
#define ATTUNE_NAMESPACE                                                               \
  attune::inline ATTUNE_TAG(ATTUNE_VERSION_MAJOR, ATTUNE_VERSION_MINOR, ATTUNE_POLICY, \
                            ATTUNE_INSTRUCTION_SET, ATTUNE_CHECKS)

#if ATTUNE_FUSED && !defined(__FMA__) && !defined(__ARM_FEATURE_FMA) && !defined(__riscv_flen)
#error \
    "attune: ATTUNE_FUSED=1 needs a target with fused multiply-add (x86: -mfma or -march=native; Cortex-M4F, M7, M33, M55; Cortex-A with VFPv4; RISC-V with F)"
#endif

// Assembly for the single-precision FPU of a Cortex-M, bit-identical to the portable code.
#if !ATTUNE_PORTABLE_KERNELS && !ATTUNE_MVE && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && \
    defined(__ARM_FP) && (__ARM_FP & 4)
#define ATTUNE_CORTEX_M_FPU 1
#else
#define ATTUNE_CORTEX_M_FPU 0
#endif

#if defined(__FAST_MATH__)
#error "attune: -ffast-math changes the results of training; compile without it"
#elif defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "attune: -ffinite-math-only breaks masks and NaN; compile without it"
#elif defined(__ASSOCIATIVE_MATH__)
#error \
    "attune: -fassociative-math reorders sums and changes the results of training; compile without it and -funsafe-math-optimizations"
#elif defined(__RECIPROCAL_MATH__)
#error \
    "attune: -freciprocal-math rounds quotients twice and changes the results of training; compile without it"
#elif defined(__NO_SIGNED_ZEROS__)
#error "attune: -fno-signed-zeros changes the results of training; compile without it"
#elif defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error \
    "attune: this FPU keeps floats in extra precision, so results differ; on x86 compile with -msse2 -mfpmath=sse"
#endif
static_assert(sizeof 0.1 == sizeof(double),
              "attune: -fsingle-precision-constant changes the results of training; compile without it");

#define ATTUNE_TEXT_OF(name) #name
#define ATTUNE_TEXT(macro) ATTUNE_TEXT_OF(macro)
namespace ATTUNE_NAMESPACE {
/// The arithmetic of this translation unit.
inline constexpr const char* kArithmeticName = ATTUNE_TEXT(ATTUNE_POLICY);
/// Whether the vector unit flushes subnormals to zero.
inline constexpr bool kFlushesSubnormals = ATTUNE_MVE || ATTUNE_NEON;
namespace detail {
/// A condition of a static assertion. A compiler then begins with the assertion's message, and prints a
/// condition of types and shapes below it.
template <bool condition>
concept Holds = condition;
/// Whether T is Template<…>, a template of types.
template <class T, template <class...> class Template>
inline constexpr bool kIsSpecialization = false;
template <template <class...> class Template, class... Arguments>
inline constexpr bool kIsSpecialization<Template<Arguments...>, Template> = true;
}  // namespace detail
namespace kernels::detail {
using attune::detail::Holds;
using attune::detail::kIsSpecialization;
// Whether assembly may have more than seven operands. At -O0 GCC runs out of registers.
#if defined(__OPTIMIZE__)
inline constexpr bool kManyOperands = true;
#else
inline constexpr bool kManyOperands = false;
#endif
}  // namespace kernels::detail
}  // namespace ATTUNE_NAMESPACE
#undef ATTUNE_TEXT
#undef ATTUNE_TEXT_OF

#if defined(__clang__)
#define ATTUNE_UNROLL _Pragma("unroll")
#else
#define ATTUNE_UNROLL _Pragma("GCC unroll 32")
#endif
// -DATTUNE_INLINE=inline leaves inlining to the compiler: faster to compile, slower code, the same bits.
#ifndef ATTUNE_INLINE
#define ATTUNE_INLINE [[gnu::always_inline]] inline
#define ATTUNE_INLINE_LAMBDA __attribute__((always_inline))
#else
#define ATTUNE_INLINE_LAMBDA
#endif
