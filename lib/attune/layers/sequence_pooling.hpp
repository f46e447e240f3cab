// Pools a sequence to one vector by weights that it gives its tokens itself (Hassani et al., "Escaping the
// Big Data Paradigm with Compact Transformers", 2021: CCT's and CVT's head).
//
//   s = x·w + b,   a = softmax(s) over the valid tokens,   y = Σᵢ aᵢ·xᵢ
//
//   daᵢ = dy·xᵢ,   ds = a ∘ (da − Σ aᵢ·daᵢ),   dw += xᵀ·ds,   db += Σ ds,   dxᵢ = dsᵢ·wᵀ + aᵢ·dy
//
// b shifts all scores, so that y does not depend on it; its gradient is zero but for rounding.
#pragma once

#include <limits>

#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/softmax.hpp>
#include <attune/layers/linear.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and options of `SequencePooling`.
struct SequencePoolingShape {
  int seq_len;       // tokens
  int d_model;       // features of a token, and of the result
  bool bias = true;  // whether the scores have a bias, as CCT's nn.Linear(d_model, 1)
};

/// Pools x[seq_len, d_model] to y[1, d_model]; w is [d_model, 1]. Reads only padding from a mask. A sequence
/// without a valid token becomes zeros and has no gradient.
template <SequencePoolingShape pooling_shape, class ScalarType = float>
struct SequencePooling {
  static constexpr SequencePoolingShape shape = [] {
    static_assert(detail::Holds<(pooling_shape.seq_len > 0 && pooling_shape.d_model > 0)>,
                  "attune::SequencePooling: seq_len and d_model must be positive; set both in "
                  "SequencePoolingShape");
    return detail::at_least_one(pooling_shape, &SequencePoolingShape::seq_len,
                                &SequencePoolingShape::d_model);
  }();
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = SequencePooling<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  /// The layer of the scores s.
  using Scores = Linear<LinearShape{shape.seq_len, shape.d_model, 1, shape.bias}, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("SequencePooling");
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, 1, shape.d_model>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename Scores::template ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,
                                        .takes_context = true,
                                        .takes_length = true,
                                        .updates_in_backward = true,
                                        .additions = Scores::kAbilities.additions};
  /// a, a number for each token.
  struct Tape {
    typename Scores::Output weights;
  };
  /// ds.
  struct Scratch {
    typename Scores::Output gradients;
  };
  using InferenceScratch = Tape;

  /// Inference. `y` may not overlap `x`. Does not read rows of x that are padding.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& tape,
                      const Call& context = {}) {
    Scores::forward(parameters, x, tape.weights, context);
    context.stage([&] {
      hide_padding(tape.weights, context);
      kernels::softmax_rows<Scalar, 1, shape.seq_len>(tape.weights.data());
      add_weighted(tape.weights, x, y);
    });
  }
  /// Training: the same; the tape keeps the weights.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    forward(parameters, x, y, tape, context);
  }
  /// Overwrites dx[seq_len, d_model], from dy[1, d_model]; adds to the gradients. `dx` may overlap neither
  /// `x` nor `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, const Tape& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, Scratch& scratch, const Call& context = {}) {
    context.stage([&] {
      multiply_valid(tape.weights, x, dy, scratch.gradients);
      kernels::softmax_row_backward<Scalar, shape.seq_len>(tape.weights.data(), scratch.gradients.data(),
                                                           scratch.gradients.data(), Scalar(1));
    });
    typename Scores::Scratch none;
    Scores::backward(parameters, x, {}, scratch.gradients, dx, gradients, none, context);
    detail::if_wanted<Input>(dx, [&](View<Input> to) {
      context.template each_token<shape.seq_len, 2 * shape.d_model>(
          [&](int i) { add_multiple(tape.weights(i, 0), dy.data, to.data + i * shape.d_model); });
    });
  }

 private:
  using Weights = typename Scores::Output;

  static void hide_padding(Weights& scores, const auto& context) {
    constexpr auto kHidden = -std::numeric_limits<kernels::Real<Scalar>>::infinity();
    for (int i = 0; i < shape.seq_len; ++i) {
      if (!context.template is_valid<shape.seq_len>(i)) scores(i, 0) = Scalar(kHidden);
    }
  }
  // y = Σ aᵢ·xᵢ. A weight of zero leaves a token out, whatever it holds.
  static void add_weighted(const Weights& weights, ConstView<Input> x, View<Output> y) {
    for (int j = 0; j < shape.d_model; ++j) y.data[j] = Scalar(0);
    for (int i = 0; i < shape.seq_len; ++i) {
      if (weights(i, 0) != 0) add_multiple(weights(i, 0), x.data + i * shape.d_model, y.data);
    }
  }
  // daᵢ = dy·xᵢ, zero where the weight is zero.
  static void multiply_valid(const Weights& weights, ConstView<Input> x, ConstView<Output> dy,
                             Weights& products) {
    for (int i = 0; i < shape.seq_len; ++i) {
      products(i, 0) = weights(i, 0) != 0
                           ? kernels::dot_of<shape.d_model>(dy.data, x.data + i * shape.d_model)
                           : Scalar(0);
    }
  }
  // y += a·x of d_model numbers.
  static void add_multiple(Scalar a, const Scalar* x, Scalar* y) {
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      const P sum =
          kernels::multiply_add(kernels::broadcast<P>(a), kernels::load<P>(x + j), kernels::load<P>(y + j));
      kernels::store(y + j, sum);
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
