// Products on a host with a BLAS: with ATTUNE_BLAS=1 (CMake option ATTUNE_BLAS), products of at least
// kBlasMinimum multiply-accumulates use CBLAS. It sums in its own order, so results no longer match other
// targets bit for bit, and it may allocate. Off by default.
#pragma once

#include <attune/kernels/portable/gemm_shape.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

#if ATTUNE_BLAS
#include <cblas.h>
#endif

namespace ATTUNE_NAMESPACE::kernels {

/// Below it OpenBLAS was never faster: `gemm.*.vs_openblas` of tests/bench/run host falls to 1 at n = 512.
inline constexpr long kBlasMinimum = 512L * 512 * 512;

/// Whether C[rows, cols] += A[rows, depth] · B uses the BLAS.
[[nodiscard]] constexpr bool goes_to_blas(int rows, int cols, int depth) {
  return ATTUNE_BLAS && static_cast<long>(rows) * cols * depth >= kBlasMinimum;
}

#if ATTUNE_BLAS
namespace detail {

// C = A·B + beta · C, with A and B transposed according to their strides; rows of C contiguous.
template <GemmShape shape, class Scalar>
void blas_gemm(const Scalar* a, const Scalar* b, Scalar* c, Scalar beta) {
  constexpr auto kTransA = shape.a_col == 1 ? CblasNoTrans : CblasTrans;
  constexpr auto kTransB = shape.b_col == 1 ? CblasNoTrans : CblasTrans;
  constexpr int kLda = shape.a_col == 1 ? shape.a_row : shape.a_col;
  constexpr int kLdb = shape.b_col == 1 ? shape.b_row : shape.b_col;
  if constexpr (std::is_same_v<Scalar, float>) {
    cblas_sgemm(CblasRowMajor, kTransA, kTransB, shape.rows, shape.cols, shape.depth, 1, a, kLda, b, kLdb,
                beta, c, shape.c_row);
  } else {
    cblas_dgemm(CblasRowMajor, kTransA, kTransB, shape.rows, shape.cols, shape.depth, 1, a, kLda, b, kLdb,
                beta, c, shape.c_row);
  }
}

}  // namespace detail
#endif

}  // namespace ATTUNE_NAMESPACE::kernels
