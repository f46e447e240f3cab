// Activation functions by element: ReLU and its square, SiLU, hard-swish, ELU, GELU (exact, and approximated
// by tanh or a sigmoid), tanh and sigmoid. kernels/ops/activation.hpp has their formulas and papers.
//
//   y = f(x),      dx = dy ∘ f′(x)
//
// Of a finite x, f and f′ are finite; only the square of SquaredRelu can overflow. At ±∞ both are their
// limits, or NaN where a formula multiplies ∞ by 0. At NaN both are NaN, but the slope of ReLU, a comparison,
// is 0. No other number comes of them.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/activation.hpp>
#include <attune/layers/tapeless.hpp>

namespace ATTUNE_NAMESPACE {

/// One activation function on [rows, cols]. No tape: backward recomputes f′ from the input.
template <Activation kind, int kRows, int kCols, class ScalarType = float>
struct ActivationLayer : detail::Unparameterized<ActivationLayer<kind, kRows, kCols, ScalarType>> {
  static_assert(detail::Holds<(kRows > 0 && kCols > 0)>,
                "attune::ActivationLayer: rows and cols must be positive");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = ActivationLayer<kind, kRows, kCols, Other>;
  template <int tokens, CacheShape>
  using Stream = ActivationLayer<kind, tokens, kCols, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("ActivationLayer", kind);
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  static constexpr Abilities kAbilities =
      detail::with(detail::kInPlaceByToken, &Abilities::backward_may_read_output, kind == Activation::kRelu);
  using Base = detail::Unparameterized<ActivationLayer>;
  using Base::forward, Base::backward;

  /// y[rows, cols] = f(x). `y` may be `x`, but backward then has no input.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.template token_elements<kRows, kCols, kWork>([&](int first, int count) ATTUNE_INLINE_LAMBDA {
      kernels::activate<kind>(count, x.data + first, y.data + first);
    });
  }

  /// dx[rows, cols] = dy ∘ f′(x). `dx` may be `dy` or `x`. For ReLU, y may stand for x. With a mask, dx is
  /// zero wherever dy is zero, even if x is NaN.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Input> x, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    context.in_any_order().template token_elements<kRows, kCols, kWork>(
        [&](int first, int count) ATTUNE_INLINE_LAMBDA {
          kernels::activate_backward<kind, Call::kSkipsZeros>(count, x.data + first, dy.data + first,
                                                              dx.data + first);
        });
  }

 private:
  static constexpr int kWork = kind == Activation::kRelu ? 3 : 24;
};

/// max(x, 0).
template <int kRows, int kCols, class Scalar = float>
using Relu = ActivationLayer<Activation::kRelu, kRows, kCols, Scalar>;
/// x·σ(x) (Elfwing et al., 2018).
template <int kRows, int kCols, class Scalar = float>
using Silu = ActivationLayer<Activation::kSilu, kRows, kCols, Scalar>;
/// x·Φ(x), exactly (Hendrycks and Gimpel, 2016).
template <int kRows, int kCols, class Scalar = float>
using Gelu = ActivationLayer<Activation::kGelu, kRows, kCols, Scalar>;
/// x·Φ(x), approximated by tanh.
template <int kRows, int kCols, class Scalar = float>
using GeluTanh = ActivationLayer<Activation::kGeluTanh, kRows, kCols, Scalar>;
/// tanh x.
template <int kRows, int kCols, class Scalar = float>
using Tanh = ActivationLayer<Activation::kTanh, kRows, kCols, Scalar>;
/// σ(x) = 1/(1 + e^(−x)).
template <int kRows, int kCols, class Scalar = float>
using Sigmoid = ActivationLayer<Activation::kSigmoid, kRows, kCols, Scalar>;
/// x·σ(1.702·x), CLIP's QuickGELU.
template <int kRows, int kCols, class Scalar = float>
using QuickGelu = ActivationLayer<Activation::kQuickGelu, kRows, kCols, Scalar>;
/// max(x, 0)² (So et al., 2021).
template <int kRows, int kCols, class Scalar = float>
using SquaredRelu = ActivationLayer<Activation::kSquaredRelu, kRows, kCols, Scalar>;
/// x·min(max(x + 3, 0), 6)/6 (Howard et al., 2019).
template <int kRows, int kCols, class Scalar = float>
using HardSwish = ActivationLayer<Activation::kHardSwish, kRows, kCols, Scalar>;
/// x where x > 0, else eˣ − 1 (Clevert et al., 2016).
template <int kRows, int kCols, class Scalar = float>
using Elu = ActivationLayer<Activation::kElu, kRows, kCols, Scalar>;

}  // namespace ATTUNE_NAMESPACE
