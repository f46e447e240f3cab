// The last token of a sequence several times behind it, as PyTorch's ReplicationPad1d((0, k)): patches of a
// time series then reach over its end (Nie et al., "A Time Series is Worth 64 Words", 2023).
//
//   yᵢ = x₍min(i, n − 1)₎;      dxᵢ = dyᵢ for i < n − 1, dx₍n−1₎ = dy₍n−1₎ + … + dy₍n+k−1₎
#pragma once

#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/class_token.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// y[seq_len + tokens, d_model] of x[seq_len, d_model]. No tape. A mask or a length of the call is a compile
/// error: the last token may be padding.
template <TokenShape token_shape, class ScalarType = float>
struct RepeatLastToken : detail::Unparameterized<RepeatLastToken<token_shape, ScalarType>>,
                         detail::InputUnread {
  static constexpr TokenShape shape = [] {
    static_assert(
        detail::Holds<(token_shape.d_model > 0 && token_shape.tokens > 0 && token_shape.seq_len > 0)>,
        "attune::RepeatLastToken: seq_len, d_model and tokens must be positive; tokens are those added");
    return detail::at_least_one(token_shape, &TokenShape::seq_len, &TokenShape::d_model, &TokenShape::tokens);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = RepeatLastToken<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint = fingerprint("RepeatLastToken", shape.tokens);
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, shape.seq_len + shape.tokens, shape.d_model>;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,  // to refuse it
                                        .takes_context = true,
                                        .lanes = Lanes::kAll};
  using Base = detail::Unparameterized<RepeatLastToken>;
  using Base::forward, Base::backward;

  /// `y` may not overlap `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    static_assert(detail::Holds<(!kMasks<typename Call::Mask> && !Call::kHasLength)>,
                  "attune::RepeatLastToken: with a mask or a length, the last token may be padding; leave it "
                  "out");
    context.stage([&] {
      for (int i = 0; i < Output::rows; ++i) {
        const int from = i < kLast ? i : kLast;
        for (int j = 0; j < shape.d_model; ++j) y(i, j) = x(from, j);
      }
    });
  }
  /// Overwrites dx[seq_len, d_model], from dy. `dx` may not overlap `dy`.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input>, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < Input::size; ++i) dx.data[i] = dy.data[i];
      for (int i = Input::rows; i < Output::rows; ++i) {
        kernels::add_to(shape.d_model, dy.data + i * shape.d_model, dx.data + kLast * shape.d_model);
      }
    });
  }

 private:
  static constexpr int kLast = shape.seq_len - 1;
};

}  // namespace ATTUNE_NAMESPACE
