// Products of a host that has a BLAS: with ATTUNE_BLAS=1 (CMake option ATTUNE_BLAS) those of at least kBlasMinimum
// multiply-accumulates go to CBLAS. Its sums run in an order of its own, so results no longer match other targets bit for
// bit, and it may allocate. Off unless asked for.
#pragma once

#include <attune/kernels/arithmetic.hpp>

#if !defined(ATTUNE_BLAS)
#define ATTUNE_BLAS 0
#endif

#if ATTUNE_BLAS
#include <cblas.h>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// From here on a BLAS is worth its call: tests/bench/run host shows `gemm.*.vs_openblas` falling towards 1 at n = 256.
inline constexpr long kBlasMinimum = 256L * 256 * 256;

namespace detail {

// C = alpha · A·B + beta · C, any of A and B transposed when its column stride says so; rows of C contiguous.
template <int kRows, int kCols, int kDepth, int kARow, int kACol, int kBRow, int kBCol, int kCRow, class Scalar>
void blas_product(const Scalar* a, const Scalar* b, Scalar* c, Scalar alpha, Scalar beta) {
  constexpr auto kTransA = kACol == 1 ? CblasNoTrans : CblasTrans;
  constexpr auto kTransB = kBCol == 1 ? CblasNoTrans : CblasTrans;
  constexpr int kLda = kACol == 1 ? kARow : kACol;
  constexpr int kLdb = kBCol == 1 ? kBRow : kBCol;
  if constexpr (std::is_same_v<Scalar, float>) {
    cblas_sgemm(CblasRowMajor, kTransA, kTransB, kRows, kCols, kDepth, alpha, a, kLda, b, kLdb, beta, c, kCRow);
  } else {
    cblas_dgemm(CblasRowMajor, kTransA, kTransB, kRows, kCols, kDepth, alpha, a, kLda, b, kLdb, beta, c, kCRow);
  }
}

}  // namespace detail
}  // namespace attune::kernels
#endif
