// A product against a plain loop in the documented order, bit for bit.
#pragma once

#include <attune/kernels/ops/gemm.hpp>

#include "check.hpp"

namespace check {

/// Which operand is read through its transpose.
enum class Layout { kNN, kNT, kTN, kTT };

inline constexpr int kLargestOperand = 20 * 600;  // scalars

/// A, B, C and what C should be: one storage for all shapes.
template <class Scalar>
inline Scalar operands[4][kLargestOperand];

/// c[m, n] as the library documents it: k rising, in blocks of kDepthBlock that are added one after the
/// other; Accumulate adds each of them to C, Continue begins with C.
template <class Scalar, class Epilogue>
[[gnu::noinline]] void plain_product(int m, int n, int depth, const Scalar* a, int a_row, int a_col,
                                     const Scalar* b, int b_row, int b_col, Scalar* c, int c_row,
                                     [[maybe_unused]] const Epilogue& epilogue) {
  namespace kernels = attune::kernels;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      constexpr bool kAccumulate = std::is_same_v<Epilogue, kernels::Accumulate>;
      Scalar* element = c + i * c_row + j;
      Scalar total = 0;
      for (int from = 0; from < depth; from += kernels::kDepthBlock) {
        const int to = from + kernels::kDepthBlock < depth ? from + kernels::kDepthBlock : depth;
        Scalar block = std::is_same_v<Epilogue, kernels::Continue> ? *element : Scalar(0);
        for (int k = from; k < to; ++k) {
          block = kernels::multiply_add<Scalar>(a[i * a_row + k * a_col], b[k * b_row + j * b_col], block);
        }
        if constexpr (kAccumulate) *element = *element + block;
        total = from == 0 ? block : total + block;
      }
      if constexpr (!kAccumulate) *element = epilogue(total, static_cast<const Scalar*>(element), j);
    }
  }
}

/// Random A, B and C of so many scalars; what C should be begins as C.
template <class Scalar>
[[gnu::noinline]] void fill_operands(std::uint64_t seed, int a_size, int b_size, int c_size) {
  Scalar *const a = operands<Scalar>[0], *const b = operands<Scalar>[1], *const c = operands<Scalar>[2];
  attune::Rng rng(seed);
  for (int i = 0; i < a_size; ++i) a[i] = rng.uniform(Scalar(-1), Scalar(1));
  for (int i = 0; i < b_size; ++i) b[i] = rng.uniform(Scalar(-1), Scalar(1));
  for (int i = 0; i < c_size; ++i) c[i] = operands<Scalar>[3][i] = rng.uniform(Scalar(-1), Scalar(1));
}

/// A product against the plain loop. What lies between the rows of C is
/// compared too: it must be untouched.
template <class Scalar, class Epilogue>
[[gnu::noinline]] void expect_product(int m, int n, int depth, Layout layout, int a_row, int a_col, int b_row,
                                      int b_col, int c_row, const Epilogue& epilogue) {
  const Scalar *const a = operands<Scalar>[0], *const b = operands<Scalar>[1], *const c = operands<Scalar>[2];
  Scalar* const expected = operands<Scalar>[3];
  plain_product(m, n, depth, a, a_row, a_col, b, b_row, b_col, expected, c_row, epilogue);
  EXPECT_TRUE(std::memcmp(c, expected, sizeof(Scalar) * static_cast<std::size_t>(m * c_row)) == 0)
      << m << n << depth << static_cast<int>(layout);
}

/// Checks one shape; A, B and C are parts of wider matrices, as the heads of attention are, when kWider > 0.
template <class Scalar, Layout layout, int m, int n, int depth, int kWider = 0,
          class Epilogue = attune::kernels::Assign>
void check_product(const Epilogue& epilogue = {}) {
  constexpr bool kTransposeA = layout == Layout::kTN || layout == Layout::kTT;
  constexpr bool kTransposeB = layout == Layout::kNT || layout == Layout::kTT;
  constexpr int kARows = kTransposeA ? depth : m, kACols = kTransposeA ? m : depth;
  constexpr int kBRows = kTransposeB ? n : depth, kBCols = kTransposeB ? depth : n;
  constexpr int kStride = n + kWider;
  static_assert(kARows * (kACols + kWider) <= kLargestOperand &&
                kBRows * (kBCols + kWider) <= kLargestOperand && m * kStride <= kLargestOperand);
  fill_operands<Scalar>(static_cast<std::uint64_t>(m * 10007 + n * 101 + depth), kARows * (kACols + kWider),
                        kBRows * (kBCols + kWider), m * kStride);

  const Scalar *const a = operands<Scalar>[0], *const b = operands<Scalar>[1];
  Scalar* const c = operands<Scalar>[2];
  const attune::MatrixView<const Scalar, kARows, kACols, kACols + kWider> stored_a(a);
  const attune::MatrixView<const Scalar, kBRows, kBCols, kBCols + kWider> stored_b(b);
  const auto run = [&](const auto& view_a, const auto& view_b) {
    attune::kernels::gemm(view_a, view_b, attune::MatrixView<Scalar, m, n, kStride>(c), epilogue);
    expect_product<Scalar>(m, n, depth, layout, view_a.row_stride, view_a.col_stride, view_b.row_stride,
                           view_b.col_stride, kStride, epilogue);
  };
  if constexpr (layout == Layout::kNN) run(stored_a, stored_b);
  if constexpr (layout == Layout::kNT) run(stored_a, stored_b.transpose());
  if constexpr (layout == Layout::kTN) run(stored_a.transpose(), stored_b);
  if constexpr (layout == Layout::kTT) run(stored_a.transpose(), stored_b.transpose());
}

}  // namespace check
