// Storage of a trained weight in 16 bits: the upper halves of floats (kernels/quantized.hpp), in the order of
// a Tensor. Products read it as they read other weights of 16 bits, without a copy in floats.
//
// An optimizer with weights in bf16 (training/stochastic_bfloat16.hpp) updates such a set. Other
// writes round to the nearest number: initialization, files, copies.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/core/tensor.hpp>
#include <attune/kernels/quantized.hpp>

namespace ATTUNE_NAMESPACE {

/// A [rows, cols] row-major matrix in bf16. Trivially copyable, and zero in `.bss`, as a Tensor.
template <class ScalarType, int kRows, int kCols>
struct Bfloat16Tensor {
  static_assert(detail::check_tensor<ScalarType, kRows, kCols>());
  static_assert(detail::Holds<std::is_same_v<ScalarType, float>>,
                "attune::Bfloat16Tensor: 16-bit weights need a model in float");

  using Scalar = ScalarType;
  static constexpr int rows = kRows;
  static constexpr int cols = kCols;
  static constexpr int size = kRows * kCols;

  /// The elements, row-major. As many bytes as whole floats have.
  alignas(Scalar) Bfloat16 values[static_cast<std::size_t>(size)];

  [[nodiscard]] constexpr Bfloat16* data() { return values; }
  [[nodiscard]] constexpr const Bfloat16* data() const { return values; }
  /// Element (row, col).
  [[nodiscard]] constexpr Bfloat16& operator()(int row, int col) { return values[row * cols + col]; }
  /// Element (row, col).
  [[nodiscard]] constexpr const Bfloat16& operator()(int row, int col) const {
    return values[row * cols + col];
  }
  constexpr void set_zero() {
    for (Bfloat16& value : values) value = 0;
  }
};

}  // namespace ATTUNE_NAMESPACE
