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

/// The rows of K or V that a projection writes: all except appended keys.
template <AttentionShape shape, class Keys>
ATTUNE_INLINE auto rows_of_tokens(Keys& keys) {
  return View<Tensor<typename Keys::Scalar, shape.kv_len, Keys::cols>>(keys.data());
}

/// Rotates Q and K by the positions of a sequence, or by given angles.
template <AttentionShape shape, class Scalar>
struct RotatedOperands {
  template <int tokens, int heads, int offset = 0>
  using Rotation = RotaryPositions<RotaryShape{.seq_len = tokens,
                                               .num_heads = heads,
                                               .d_k = shape.d_k,
                                               .rotary_dim = shape.rotary_dim,
                                               .pairs = shape.rotary_pairs,
                                               .base = shape.rotary_base,
                                               .scaling = shape.rotary_scaling,
                                               .offset = offset},
                                   Scalar>;
  using QueryRotation = Rotation<shape.seq_len, shape.num_heads, shape.offset>;
  using KeyRotation = Rotation<shape.kv_len, shape.num_kv_heads>;
  /// The angles of the positions of a step of a stream, and the angles beyond the table that it keeps.
  template <int tokens>
  using Angles = SineTable<Scalar, tokens, shape.rotary_dim / 2>;
  template <CacheShape cache>
  using ExtendedAngles = typename QueryRotation::template ExtendedAngles<cache>;

  static void compute_angles(std::uint64_t position, auto& angles, auto& beyond) {
    QueryRotation::angles_from(position, angles, beyond);
  }
  static void forward_queries(auto& kept, const auto& context, const auto&... angles) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      QueryRotation::forward(kept.query, kept.query, angles..., context.template count<shape.seq_len>());
    });
  }
  static void forward_keys(auto& kept, const auto& context, const auto&... angles) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      const auto rows = rows_of_tokens<shape>(kept.key);
      KeyRotation::forward(rows, rows, angles..., context.keys().template count<shape.kv_len>());
    });
  }
  ATTUNE_INLINE static void backward(auto& tape, const auto& context) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      QueryRotation::backward(tape.query, tape.query, context.template count<shape.seq_len>());
    });
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      const auto rows = rows_of_tokens<shape>(tape.key);
      KeyRotation::backward(rows, rows, context.keys().template count<shape.kv_len>());
    });
  }
};

/// Multiplies Q and K, or their gradients, each by d_k^-¼.
template <AttentionShape shape, class Scalar>
struct ScaledOperands {
  // Computed in double: 1/√√n is the inverse root of a root.
  static constexpr auto kScale = [] {
    double root = 1.0 / inverse_square_root<double>(shape.d_k);
    double fourth = root;
    for (int i = 0; i < 64; ++i) fourth = 0.5 * (fourth + root / fourth);
    return static_cast<kernels::Real<Scalar>>(1.0 / fourth);
  }();

  template <class Operand>
  static void forward(Operand& operand, const auto& context) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      for (int i = 0; i < context.template count<Operand::rows>(); ++i) {
        kernels::scale<Operand::cols>(&operand(i, 0), Scalar(kScale));
      }
    });
  }
};

/// Applies the options to Q, K and V. `kept` is a tape, or a scratch with the members of InferenceScratch
/// (attention_memory.hpp).
template <AttentionShape shape, class Scalar>
struct AttentionOperands {
  using Parts = AttentionParameters<shape, Scalar>;
  using Rotation =
      std::conditional_t<(shape.rotary_dim > 0), RotatedOperands<shape, Scalar>, NoOption<shape, Scalar, 4>>;
  using Scale = std::conditional_t<shape.scaling == Scaling::kInverseFourthRootDkEach &&
                                       shape.query_key_norm != QueryKeyNorm::kUnitLength,
                                   ScaledOperands<shape, Scalar>, NoOption<shape, Scalar, 5>>;

  ATTUNE_INLINE static auto of_tokens(auto& keys) { return rows_of_tokens<shape>(keys); }
  /// Turns the projection of queries into Q. Rotates by the positions of a sequence, or by `angles`.
  static void finish_queries(const auto& parameters, auto& kept, const auto& context, const auto&... angles) {
    Parts::Norms::forward_queries(parameters.norms, kept, context);
    Parts::Scale::forward(parameters.scores, kept, context);
    Rotation::forward_queries(kept, context, angles...);
    Scale::forward(kept.query, context);
  }
  /// Turns the projections of keys and values into K and V.
  static void finish_keys(const auto& parameters, auto& kept, const auto& context, const auto&... angles) {
    Parts::Norms::forward_keys(parameters.norms, kept, context);
    Rotation::forward_keys(kept, context, angles...);
    append_keys<shape, typename Parts::Appended>(parameters.appended, kept, context);
    Scale::forward(kept.key, with_appended<shape>(context).keys());
  }
  /// Turns dQ, dK and dV, stored in place of Q, K and V, into gradients of the projections' outputs.
  ATTUNE_INLINE static void backward(const auto& parameters, auto& tape, auto& gradients,
                                     const auto& context) {
    Scale::forward(tape.query, context);
    Scale::forward(tape.key, with_appended<shape>(context).keys());
    Parts::Appended::backward(tape, gradients.appended, context);
    Rotation::backward(tape, context);
    Parts::Scale::backward(parameters.scores, tape, gradients.scores, context);
    Parts::Norms::backward(parameters.norms, tape, gradients.norms, context);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
