// Keys and values appended after the tokens: PyTorch's add_bias_kv, one row of parameters each, then its
// add_zero_attn, one row of zeros each.
//
// They are rows kv_len … of K and V. With a valid length they move forward, toward the valid tokens, by whole
// lanes of a row sum or whole blocks of a product. So every sum keeps its order, and its bits. The rows in
// between are zeros, and hidden.
#pragma once

#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/gemm.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Number of keys appended by options.
template <AttentionShape shape>
inline constexpr int kAppended = shape.num_keys() - shape.kv_len;

/// The row of the first appended key, after the valid keys.
template <AttentionShape shape>
constexpr auto appended_at(const auto& keys) {
  const auto tokens = keys.template count<shape.kv_len>();
  if constexpr (std::is_same_v<decltype(tokens), const int>) {
    constexpr bool kOneBlock = shape.num_keys() <= kernels::kDepthBlock;
    constexpr int kStep = kOneBlock ? kernels::kSumLanes : kernels::kDepthBlock;
    constexpr int kKeys = shape.kv_len, kRest = kKeys % kStep;
    const int before = kOneBlock ? tokens - kRest : tokens;  // tokens covered by whole steps
    return smaller((before + kStep - 1) / kStep * kStep + kRest, kKeys);
  } else {
    return tokens;
  }
}
/// `context`, with the appended keys among its keys.
template <AttentionShape shape, AnyContext Call>
ATTUNE_INLINE auto with_appended(const Call& context) {
  const FirstTokens<shape.num_keys()> keys{appended_at<shape>(context.keys()) + kAppended<shape>};
  return first_if<(kAppended<shape> > 0 && Call::kKeysHaveLength)>(context.with_keys(keys), context);
}

/// b_k and b_v of MultiHeadAttention.
template <AttentionShape shape, class ScalarType>
struct BiasKv {
  using Scalar = ScalarType;
  static constexpr int kKeyWidth = shape.num_kv_heads * shape.d_k,
                       kValueWidth = shape.num_kv_heads * shape.d_v;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, 1, kKeyWidth> bias_k;
    [[no_unique_address]] Vector<Scalar, 1, kValueWidth> bias_v;
    ATTUNE_FIELDS(KeyBias(bias_k), KeyBias(bias_v))
  };
  using Parameters = ParametersOf<Tensor>;

  static void forward(const auto& parameters, auto& kept, auto at) {
    copy_n(parameters.bias_k.data(), kKeyWidth, kept.key.data() + at * kKeyWidth);
    copy_n(parameters.bias_v.data(), kValueWidth, kept.value.data() + at * kValueWidth);
  }
  /// Adds the gradients of b_k and b_v from dK and dV, stored in place of K and V.
  static void backward(const auto& tape, auto& gradients, const auto& context) {
    const auto at = appended_at<shape>(context.keys());
    context.stage([&] {
      add_column_sums(view(tape.key).template rows_at<1>(at), view(gradients.bias_k));
      add_column_sums(view(tape.value).template rows_at<1>(at), view(gradients.bias_v));
    });
  }
};

/// Writes the appended rows of K and V: `Bias` is BiasKv, or no option.
template <AttentionShape shape, class Bias>
void append_keys([[maybe_unused]] const auto& parameters, auto& kept, const auto& context) {
  if constexpr (kAppended < shape >> 0) {
    context.stage([&] {
      const auto clear = [&](int from, int to) ATTUNE_INLINE_LAMBDA {
        const auto rows = [&](auto& matrix) ATTUNE_INLINE_LAMBDA {
          fill_n(matrix.data() + from * matrix.cols, (to - from) * matrix.cols, typename Bias::Scalar(0));
        };
        rows(kept.key);
        rows(kept.value);
      };
      const auto at = appended_at<shape>(context.keys());
      clear(context.keys().template count<shape.kv_len>(), at);
      Bias::forward(parameters, kept, at);
      if (shape.add_zero_attn) clear(at + kAppended<shape> - 1, at + kAppended<shape>);
    });
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
