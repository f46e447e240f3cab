// The operands of MultiHeadAttention's heads, from the projections of its inputs, and back.
//
// Options normalize Q and K, multiply Q by a trained factor, rotate Q and K, append keys and values, and
// scale Q and K, in this order.
#pragma once

#include <type_traits>

#include <attune/attention/attention_parameters.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/bias_kv.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/execution/layer.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Applies the options to Q, K and V. `kept` is a tape, or a scratch with the members of InferenceScratch
/// (attention_memory.hpp).
template <AttentionShape shape, class Scalar>
struct AttentionOperands {
  using Parts = AttentionParameters<shape, Scalar>;
  using Real = kernels::Real<Scalar>;

  // Multiplies Q and K each by d_k^-¼. Computed in double: 1/√√n is the inverse root of a root.
  static constexpr bool kScaleOperands =
      shape.scaling == Scaling::kInverseFourthRootDkEach && shape.query_key_norm != QueryKeyNorm::kUnitLength;
  static constexpr Real kOperandScale = [] {
    double root = 1.0 / inverse_square_root<double>(shape.d_k);
    double fourth = root;
    for (int i = 0; i < 64; ++i) fourth = 0.5 * (fourth + root / fourth);
    return static_cast<Real>(1.0 / fourth);
  }();

  /// The rotation of `heads` heads, if there is one.
  static constexpr bool kRotates = shape.rotary_dim > 0;
  template <int tokens, int heads, int offset = 0>
  using Rotation = RotaryPositions<RotaryShape{.seq_len = tokens,
                                               .num_heads = heads,
                                               .d_k = shape.d_k,
                                               .rotary_dim = kRotates ? shape.rotary_dim : 2,
                                               .pairs = shape.rotary_pairs,
                                               .base = shape.rotary_base,
                                               .scaling = shape.rotary_scaling,
                                               .offset = offset},
                                   Scalar>;

  /// The rows of K or V that a projection writes: all except appended keys.
  template <class Keys>
  ATTUNE_INLINE static auto of_tokens(Keys& keys) {
    return View<Tensor<Scalar, shape.kv_len, Keys::cols>>(keys.data());
  }
  /// Turns the projection of queries into Q. Rotates by the positions of a sequence, or by `angles`.
  static void finish_queries(const auto& parameters, auto& kept, const auto& context, const auto&... angles) {
    Parts::Norms::forward_queries(parameters.norms, kept, context);
    Parts::Scale::forward(parameters.scores, kept, context);
    if constexpr (kRotates) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        QueryRotation::forward(kept.query, kept.query, angles..., context.template count<shape.seq_len>());
      });
    }
    scale(kept.query, context);
  }
  /// Turns the projections of keys and values into K and V.
  static void finish_keys(const auto& parameters, auto& kept, const auto& context, const auto&... angles) {
    Parts::Norms::forward_keys(parameters.norms, kept, context);
    if constexpr (kRotates) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        const auto rows = of_tokens(kept.key);
        KeyRotation::forward(rows, rows, angles..., context.keys().template count<shape.kv_len>());
      });
    }
    append_keys<shape, Scalar>(parameters.appended, kept, context);
    scale(kept.key, with_appended<shape>(context).keys());
  }
  /// Turns dQ, dK and dV, stored in place of Q, K and V, into gradients of the projections' outputs.
  ATTUNE_INLINE static void backward(const auto& parameters, auto& tape, auto& gradients,
                                     const auto& context) {
    scale(tape.query, context);
    scale(tape.key, with_appended<shape>(context).keys());
    Parts::Appended::backward(tape, gradients.appended, context);
    if constexpr (kRotates) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        QueryRotation::backward(tape.query, tape.query, context.template count<shape.seq_len>());
      });
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        const auto rows = of_tokens(tape.key);
        KeyRotation::backward(rows, rows, context.keys().template count<shape.kv_len>());
      });
    }
    Parts::Scale::backward(parameters.scores, tape, gradients.scores, context);
    Parts::Norms::backward(parameters.norms, tape, gradients.norms, context);
  }

 private:
  using QueryRotation = Rotation<shape.seq_len, shape.num_heads, shape.offset>;
  using KeyRotation = Rotation<shape.kv_len, shape.num_kv_heads>;

  // Multiplies Q or K by d_k^-¼.
  template <class Operand, class Call>
  static void scale([[maybe_unused]] Operand& operand, [[maybe_unused]] const Call& context) {
    if constexpr (kScaleOperands) {
      context.stage([&]() ATTUNE_INLINE_LAMBDA {
        const auto rows = context.template count<Operand::rows>();
        if constexpr (Call::kHasLength) {
          for (int i = 0; i < rows; ++i) kernels::scale<Operand::cols>(&operand(i, 0), Scalar(kOperandScale));
        } else {
          kernels::scale<Operand::size>(operand.data(), Scalar(kOperandScale));
        }
      });
    }
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
