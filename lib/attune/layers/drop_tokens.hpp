// Without the first tokens of a sequence, such as registers or a class token behind the encoder.
//
//   yᵢ = xᵢ₊ₖ;      dxᵢ = 0 for i < k, dxᵢ₊ₖ = dyᵢ
#pragma once

#include <attune/layers/class_token.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// y[seq_len − tokens, d_model] of x[seq_len, d_model]. No tape.
template <TokenShape shape, class ScalarType = float>
struct DropTokens : detail::Unparameterized<DropTokens<shape, ScalarType>>, detail::InputUnread {
  static_assert(detail::Holds<(shape.d_model > 0 && shape.tokens > 0 && shape.seq_len > shape.tokens)>,
                "attune::DropTokens: d_model and tokens must be positive, and seq_len more than tokens");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = DropTokens<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint = fingerprint("DropTokens", shape.tokens);
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, detail::at_least_one(shape.seq_len - shape.tokens), shape.d_model>;
  static constexpr Abilities kAbilities{.takes_context = true, .lanes = Lanes::kAll};
  using Base = detail::Unparameterized<DropTokens>;
  using Base::forward, Base::backward;

  /// `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < Output::size; ++i) y.data[i] = x.data[kDropped + i];
    });
  }
  /// Overwrites dx[seq_len, d_model], from dy. `dx` may not overlap `dy`.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input>, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < kDropped; ++i) dx.data[i] = Scalar(0);
      for (int i = 0; i < Output::size; ++i) dx.data[kDropped + i] = dy.data[i];
    });
  }

 private:
  static constexpr int kDropped = shape.tokens * shape.d_model;  // scalars
};

}  // namespace ATTUNE_NAMESPACE
