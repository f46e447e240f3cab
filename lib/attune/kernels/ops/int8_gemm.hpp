// Products of 8-bit integers: rows of floats times packed integers (packed_int8.hpp).
//
//   C[r, j] = epilogue(float(Σ_k q[r, k]·w[k, j]) · (s_r·t_j))
//   C[r, k] = epilogue(float(Σ_j q[r, j]·w[k, j]) · s_r)              of the transpose, q from A[r, j]·t_j
//
// q and s are A's quantized rows and their scales (simd/int8_rows.hpp), t the scales of W's columns. Integer
// sums are exact, so all targets have the same bits in any order: int32 up to a depth of 131,072, int64
// beyond. A row of A with a NaN or an infinity gives NaN. The scheme is from Jacob et al., "Quantization and
// Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", 2018. It uses scales without
// offsets, one for each row of A and column of W.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/int8_gemm.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/mve/int8_gemm.hpp>
#include <attune/kernels/neon/int8_gemm.hpp>
#include <attune/kernels/portable/epilogues.hpp>
#include <attune/kernels/simd/int8_gemm.hpp>
#include <attune/kernels/simd/int8_rows.hpp>
#include <attune/kernels/simd/packed_int8.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

/// The number of columns of a matrix, with this many rows, that is packed on the stack in one go: as many
/// groups of 16 as fit into 4 KB, at least one. With MVE into 8 KB, since rounding A once more for other
/// columns takes longest there.
constexpr int packed_columns_at_once(int rows) {
  return larger(1, (ATTUNE_MVE ? 8192 : 4096) / 16 / ((rows + 15) / 16 * 16)) * 16;
}

#if ATTUNE_INT8_X86 || ATTUNE_INT8_NEON || ATTUNE_MVE

// Computes several rows of C at a time, in blocks of columns: as many as Int8Sums holds, or 16 for the
// transpose. Remaining rows run one by one. The rows' integers and sums are on the stack.
template <Int8Shape shape, class View, class Epilogue>
ATTUNE_INLINE void int8_rows(const float* a, int rows, const View& b, float* c, const Epilogue& epilogue) {
  using Packed = typename View::Packed;
  // The sums of a transpose take 16 terms at a time, others on x86-64 four.
  constexpr int kFilled = ATTUNE_INT8_X86 && !View::transposed ? 8 : 16;
  constexpr int kTerms = (shape.depth + kFilled - 1) / kFilled * kFilled;
  constexpr int kColumns = View::transposed ? 16 : std::extent_v<Int8Sums>;
  constexpr int kRowsAtOnce = View::transposed ? kInt8TransposedRowsAtOnce : kInt8RowsAtOnce;
  [[maybe_unused]] constexpr bool kSideBySide = shape.a_row == 1 && shape.a_col != 1;
#if ATTUNE_INT8_NEON
  constexpr int kQuantized = 8, kNextRow = 8;  // rows of a group, with eight integers of each in turn
#elif ATTUNE_INT8_X86
  constexpr int kQuantized = kSideBySide ? larger(kRowsAtOnce, kInt8Lanes) : kRowsAtOnce;  // rows at a time
  [[maybe_unused]] constexpr int kNextRow = kTerms;
#else
  constexpr int kQuantized = kRowsAtOnce, kNextRow = kTerms;
#endif
  // A row is written in whole vectors, in front of the next one.
  alignas(64) Int8Term integers[std::size_t{kQuantized * kTerms + 16 - kFilled}];
  Int8Row scales[std::size_t{kQuantized}];
  // Rows of C from quantized rows of A.
  const auto multiply_rows = [&]<int kRows>(int row, const Int8Term* q,
                                            const Int8Row* quantized) ATTUNE_INLINE_LAMBDA {
    alignas(64) Int8Sums sums[std::size_t{kRows}];
    const int begin = View::transposed ? b.first : 0, end = begin + shape.cols;
    for (int block = begin / 16 * 16; block < end; block += kColumns) {
      const int first = larger(block, begin), last = smaller(block + kColumns, end), col = first - begin;
      if constexpr (View::transposed) {
        int8_transposed_sums<kRows, kTerms>(q, b.bytes + Packed::place(block, 0), Packed::kDepth, shape.depth,
                                            sums);
      } else {
        int8_sums<kRows, kTerms>(q, b.bytes + Packed::place(0, block), last - block, sums);
      }
      // Stores all rows together, so that no row waits for another's store.
      const auto finish = [&](int count) ATTUNE_INLINE_LAMBDA {
        const float* const of_col = b.scale + col;
        float* const to = c + row * shape.c_row + col;
        for_each_packet<float>(count, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
          P finished[std::size_t{kRows}];
          ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) {
            const P sum = int8_sums_as_floats<P>(sums[r] + (first - block) + j, quantized[r]);
            const float scale = quantized[r].scale;
            P product;
            if constexpr (View::folds) {
              product = multiple(scale, sum);
            } else {
              product = multiply(sum, multiple(scale, load<P>(of_col + j)));
            }
            finished[r] = epilogue(product, static_cast<const float*>(to + r * shape.c_row + j), col + j);
          }
          ATTUNE_UNROLL for (int r = 0; r < kRows; ++r) store(to + r * shape.c_row + j, finished[r]);
        });
      };
      if (last - first == kColumns) {
        finish(kColumns);  // packets without a remainder
      } else {
        finish(last - first);
      }
    }
  };
  const auto some_rows = [&]<int kRows>(int row) ATTUNE_INLINE_LAMBDA {
#if ATTUNE_MVE
    if constexpr (kRows > 1 && kSideBySide) {
      quantize_side_by_side<View::folds>(a + row, shape.a_col, kRows, b.scale, b.terms, integers, kTerms,
                                         scales);
    } else
#endif
    {
      for (int r = 0; r < kRows; ++r) {
        scales[r] = quantize_int8_row<View::folds, shape.depth, shape.a_col>(
            a + (row + r) * shape.a_row, b.scale, b.terms, integers + r * kNextRow);
      }
    }
    multiply_rows.template operator()<kRows>(row, integers, scales);
  };
  int row = 0;
#if ATTUNE_INT8_X86
  if constexpr (kSideBySide) {
    const auto side_by_side = [&]<int kRows>() ATTUNE_INLINE_LAMBDA {
      constexpr int kRest = kRows % kRowsAtOnce, kWhole = kRows - kRest;
      for (; rows - row >= kRows; row += kRows) {
        quantize_side_by_side<View::folds, kRows, kTerms>(a + row, shape.a_col, b.scale, b.terms, integers,
                                                          scales);
        for (int r = 0; r < kWhole; r += kRowsAtOnce) {
          multiply_rows.template operator()<kRowsAtOnce>(row + r, integers + r * kTerms, scales + r);
        }
        if constexpr (kRest > 0) {
          multiply_rows.template operator()<kRest>(row + kWhole, integers + kWhole * kTerms, scales + kWhole);
        }
      }
    };
    side_by_side.template operator()<kInt8Lanes>();
    if constexpr (kInt8Lanes > 4) side_by_side.template operator()<4>();
  }
#endif
  if constexpr (kRowsAtOnce > 1) {
    for (; rows - row >= kRowsAtOnce; row += kRowsAtOnce) some_rows.template operator()<kRowsAtOnce>(row);
  }
  for (; row < rows; ++row) some_rows.template operator()<1>(row);
}

#endif

// One row of C at a time. Its row of A in integers and 16 sums are on the stack.
template <Int8Shape shape, class View, class Epilogue>
[[gnu::noinline]] void int8_gemm(const float* a, int rows, const View& b, float* c, Epilogue epilogue) {
#if ATTUNE_INT8_DSP
  if constexpr (fits_int8_panel(shape.depth)) return int8_panels<shape>(a, rows, b, c, epilogue);
#elif ATTUNE_INT8_X86 || ATTUNE_INT8_NEON || ATTUNE_MVE
  if constexpr (shape.depth <= kInt8MostTerms) return int8_rows<shape>(a, rows, b, c, epilogue);
#endif
  using Sum = std::conditional_t<(shape.depth > 131072), std::int64_t, std::int32_t>;
  constexpr int kColumns = 16;  // at a time
  std::int8_t q[std::size_t{shape.depth}];
  Array<float, kColumns> finished;
  for (int row = 0; row < rows; ++row) {
    const float* const from = a + row * shape.a_row;
    float* const to = c + row * shape.c_row;
    const float scale = quantize_row(
        b.terms, [&](int k) ATTUNE_INLINE_LAMBDA { return b.folded(from[k * shape.a_col], k); }, q);
    for (int k = b.terms; k < shape.depth; ++k) q[k] = 0;
    for (int first = 0; first < shape.cols; first += kColumns) {
      const int count = smaller(shape.cols - first, kColumns);
      for (int j = 0; j < count; ++j) {
        Sum sum = 0;
        for (int k = 0; k < shape.depth; ++k) sum += q[k] * b.integer(k, first + j);
        finished[j] = multiply(static_cast<float>(sum), b.scaled(scale, first + j));
      }
      for_each_packet<float>(count, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        store(to + first + j,
              epilogue(load<P>(finished + j), static_cast<const float*>(to + first + j), first + j));
      });
    }
  }
}

#if ATTUNE_MVE || ATTUNE_INT8_NEON

/// An epilogue for columns of C from `first` on.
template <class Epilogue>
struct FromColumn {
  Epilogue epilogue;
  int first;
  template <class P, class Scalar>
  ATTUNE_INLINE P operator()(const P& sum, const Scalar* c, int col) const {
    return epilogue(sum, c, first + col);
  }
};

/// Rows of A from which the integers of a transpose are transposed on the stack, some columns of C at a time:
/// sums over contiguous integers are faster.
inline constexpr int kInt8RowsToTranspose = 3;

template <Int8Shape shape, class View, class Epilogue>
[[gnu::noinline]] void transposed_int8_gemm(const float* a, int rows, const View& b, float* c,
                                            const Epilogue& epilogue) {
  using Terms = std::remove_const_t<decltype(b.terms)>;
  constexpr int kTerms = (shape.depth + 15) / 16 * 16;
  constexpr int kBlock = smaller(shape.cols, packed_columns_at_once(shape.depth));
  const auto columns = [&]<int kCols>(int first) ATTUNE_INLINE_LAMBDA {
    using Contiguous = FoldedInt8View<shape.depth, kCols, Terms>;
    alignas(64) std::int8_t bytes[std::size_t{(kCols + 15) / 16 * 16 * kTerms}];
    transpose_integers(b.bytes + View::Packed::place(b.first + first, 0), View::Packed::kDepth, b.terms,
                       kCols, bytes, kTerms);
    constexpr Int8Shape kShape{shape.depth, kCols, shape.a_row, shape.a_col, shape.c_row};
    int8_gemm<kShape>(a, rows, Contiguous{{bytes, b.scale, 0, b.terms}}, c + first,
                      FromColumn<Epilogue>{epilogue, first});
  };
  constexpr int kWhole = shape.cols / kBlock * kBlock;
  for (int first = 0; first < kWhole; first += kBlock) columns.template operator()<kBlock>(first);
  if constexpr (kWhole < shape.cols) columns.template operator()<shape.cols - kWhole>(kWhole);
}

#endif

}  // namespace detail

/// C = epilogue(A·B) in integers. A may have any strides, rows of C must be contiguous, and C may not overlap
/// A or B. If A or C is a PartView, only valid rows are computed. The stack has integers and sums of
/// some rows of A: at most 4 KB, or depth + 64 bytes where a row is computed alone; with MVE, for a transpose
/// of three rows or more, 8 KB beside. With NEON: eight rows of A, and 4 KB for a transpose.
template <class A, int kDepth, int kColumns, int kRows, int kCols, bool kTransposed, class Terms, class C,
          class Epilogue = Assign>
ATTUNE_INLINE void gemm(const A& a,
                        const PackedInt8View<kDepth, kColumns, kRows, kCols, kTransposed, Terms>& b,
                        const C& c, Epilogue epilogue = {}) {
  static_assert(
      detail::Holds<(A::rows == C::rows && kCols == C::cols && A::cols == kRows && C::col_stride == 1)>,
      "attune::kernels::gemm: shapes do not chain; C[M, N] = A[M, K] * B[K, N]");
  static_assert(detail::Holds<std::is_same_v<typename C::Scalar, float>>,
                "attune: packed int8 weights need a model in float, one sequence at a time; use Int8Weights "
                "for Lockstep and double");
  constexpr detail::Int8Shape kShape{kRows, kCols, A::row_stride, A::col_stride, C::row_stride};
  const int rows = smaller<int>(used_rows(a), used_rows(c));
#if ATTUNE_MVE || ATTUNE_INT8_NEON
  if constexpr (kTransposed && kRows <= detail::kInt8MostTerms && C::rows >= detail::kInt8RowsToTranspose) {
    if (ATTUNE_MVE || b.first % 8 == 0) {
      return detail::transposed_int8_gemm<kShape>(a.data, rows, b, c.data, epilogue);
    }
  }
#endif
  if constexpr (std::is_same_v<typename C::Scalar, float>) {
    detail::int8_gemm<kShape>(a.data, rows, b, c.data, epilogue);
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels
