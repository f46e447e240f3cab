// The part of a model that is not trained.
//
//   constexpr Backbone::Parameters kBackbone = …;                                     // flash
//   using Model = Sequential<Frozen<Backbone, kBackbone>, Linear<LinearShape{1, 16, 10}>>;   // the head is
//   trained
//
// What is trained is part of the type: a Trainer of this model has parameters, gradients, moments and a tape
// for the rest alone, and backward ends where the frozen part begins. Its parameters stay where they are.
#pragma once

#include <attune/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// `Layer` with constant parameters, at the front of a model: no layer before it is trained.
template <class Layer, const typename Layer::Parameters& kParameters>
struct Frozen {
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  struct WithScalar;  // constants have one scalar
  struct Parameters {
    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor&, const TensorPath*, Sets&...) {}
    template <class Initialiser>
    void initialise(const Initialiser&, Rng&) {}
  };
  struct Tape {};
  using Scratch = typename Layer::InferenceScratch;
  using InferenceScratch = typename Layer::InferenceScratch;

  using InputView = detail::ConstView<Input>;
  using OutputView = detail::MutableView<Output>;
  using OutputGradientView = detail::ConstView<Output>;

  /// Inference of the layer, in training too. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters&, InputView x, OutputView y, InferenceScratch& scratch,
                      const Mask& mask = {}) {
    detail::forward_through<Layer>(mask, kParameters, x, y, scratch);
  }
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters&, InputView x, OutputView y, Tape&, Scratch& scratch,
                      const Mask& mask = {}) {
    detail::forward_through<Layer>(mask, kParameters, x, y, scratch);
  }
  /// Nothing: there is no dx.
  static void backward(const Parameters&, InputView, Tape&, OutputGradientView, Parameters&, Scratch&) {}
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
