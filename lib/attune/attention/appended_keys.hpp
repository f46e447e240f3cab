// Keys and values behind those of the tokens: PyTorch's add_bias_kv, a row of parameters each, then its
// add_zero_attn, a row of zeros each.
#pragma once

#include <algorithm>

#include <attune/attention/attention_shape.hpp>
#include <attune/core/initialise.hpp>
#include <attune/core/layer.hpp>
#include <attune/core/weights.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// b_k and b_v of MultiHeadAttention.
template <AttentionShape shape, class ScalarType>
struct AppendedKeys {
  using Scalar = ScalarType;
  static constexpr int kKeyWidth = shape.num_kv_heads * shape.d_k,
                       kValueWidth = shape.num_kv_heads * shape.d_v;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    [[no_unique_address]] Vector<Scalar, 1, kKeyWidth> bias_k;
    [[no_unique_address]] Vector<Scalar, 1, kValueWidth> bias_v;

    static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&&... sets) {
      visitor(TensorPath{"bias_k", parent, TensorKind::kBias}, sets.bias_k...);
      visitor(TensorPath{"bias_v", parent, TensorKind::kBias}, sets.bias_v...);
    }
    /// N(0, 1/width), as in PyTorch, whatever the initialiser.
    void initialise(const auto&, Rng& rng) {
      fill_normal(bias_k, Scalar(0), root_of_ratio<Scalar>(1, kKeyWidth), rng);
      fill_normal(bias_v, Scalar(0), root_of_ratio<Scalar>(1, kValueWidth), rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;

  static void forward(const auto& parameters, auto& kept) {
    std::copy_n(parameters.bias_k.data(), kKeyWidth, kept.key.data() + shape.kv_len * kKeyWidth);
    std::copy_n(parameters.bias_v.data(), kValueWidth, kept.value.data() + shape.kv_len * kValueWidth);
  }
  /// From dK and dV, in the places of K and V.
  static void backward(const auto& tape, auto& gradients, const auto& pieces) {
    pieces([&] {
      add_column_sums(view(tape.key).template rows_at<1>(shape.kv_len), view(gradients.bias_k));
      add_column_sums(view(tape.value).template rows_at<1>(shape.kv_len), view(gradients.bias_v));
    });
  }
};

template <AttentionShape shape, class ScalarType>
  requires(!shape.add_bias_kv)
struct AppendedKeys<shape, ScalarType> {
  using Scalar = ScalarType;
  struct Parameters {
    static constexpr void visit(const auto&, const TensorPath*, auto&&...) {}
    static void initialise(const auto&, Rng&) {}
  };
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = Parameters;
  ATTUNE_INLINE static void forward(const auto&, const auto&) {}
  ATTUNE_INLINE static void backward(const auto&, const auto&, const auto&) {}
};

/// Writes the rows of K and V behind the tokens'.
template <AttentionShape shape, class Scalar>
void append_keys(const auto& parameters, auto& kept, const auto& pieces) {
  if constexpr (shape.num_keys() > shape.kv_len) {
    pieces([&] {
      AppendedKeys<shape, Scalar>::forward(parameters, kept);
      if constexpr (shape.add_zero_attn) {
        const auto clear = [](auto& matrix) {
          std::fill_n(matrix.data() + (matrix.rows - 1) * matrix.cols, matrix.cols, Scalar(0));
        };
        clear(kept.key);
        clear(kept.value);
      }
    });
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
