// A layer of one's own in which tokens meet.
#pragma once

#include <attune/attune.hpp>

/// y(t, c) = bias(c) + Σ_k weight(c, k)·x(t + k − n/2, c), a filter of n = kKernel tokens for each feature:
/// PyTorch's nn.Conv1d(d, d, n, padding="same", groups=d). Outside of the sequence, and where a token is
/// padding, x is zero.
template <int kRows, int kCols, int kKernel, class ScalarType = float>
struct DepthwiseConvolution {
  using Scalar = ScalarType;
  using Input = attune::Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] attune::TableOf<Matrix, Scalar, kCols, kKernel> weight;
    [[no_unique_address]] Vector<Scalar, 1, kCols> bias;
    ATTUNE_FIELDS(Weight(weight), Bias(bias))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static constexpr attune::Abilities kAbilities{
      .mask = attune::MaskUse::kPadding, .takes_context = true, .takes_length = true};

  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.template each_token<kRows, kCols * kKernel>([&](int t) {
      for (int c = 0; c < kCols; ++c) y(t, c) = p.bias(0, c);
      for_each_tap(context, t, [&](int k, int from) {
        for (int c = 0; c < kCols; ++c) y(t, c) += p.weight(c, k) * x(from, c);
      });
    });
  }
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, Tape&, Scratch&,
                      const Call& context = {}) {
    InferenceScratch none;
    forward(p, x, y, none, context);
  }
  template <attune::AnyContext Call = attune::Context<>>
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&, const Call& context = {}) {
    context.template each_token<kRows, kCols * kKernel>([&](int t) {
      for (int c = 0; c < kCols; ++c) dx(t, c) = 0;
    });
    context.template each_token<kRows, kCols * kKernel>([&](int t) {
      for (int c = 0; c < kCols; ++c) gradients.bias(0, c) += dy(t, c);
      for_each_tap(context, t, [&](int k, int from) {
        for (int c = 0; c < kCols; ++c) {
          gradients.weight(c, k) += dy(t, c) * x(from, c);
          dx(from, c) += p.weight(c, k) * dy(t, c);
        }
      });
    });
  }

 private:
  /// Calls body(k, from) for each token that the filter reads for token t.
  static void for_each_tap(const auto& context, int t, const auto& body) {
    for (int k = 0; k < kKernel; ++k) {
      const int from = t + k - kKernel / 2;
      if (context.template is_valid<kRows>(from)) body(k, from);
    }
  }
};
