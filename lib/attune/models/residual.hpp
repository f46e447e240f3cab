// A layer with a way around it:  y = x + f(x),   dx = dy + (∂f/∂x)ᵀ·dy   (He et al., "Deep Residual Learning
// for Image Recognition", 2016).
#pragma once

#include <attune/models/composition.hpp>
#include <attune/kernels/residual.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// x + f(x); the output of the layer has the shape of its input.
template <class Layer>
struct Residual : Layer {
  static_assert(detail::kFits<Layer>);
  using Scalar = typename Layer::Scalar;
  using Parameters = typename Layer::Parameters;
  using Tape = typename Layer::Tape;
  using Scratch = typename Layer::Scratch;
  using InferenceScratch = typename Layer::InferenceScratch;
  using InputView = detail::ConstView<typename Layer::Input>;
  using InputGradientView = detail::MutableView<typename Layer::Input>;
  using OutputView = detail::MutableView<typename Layer::Output>;
  using OutputGradientView = detail::ConstView<typename Layer::Output>;
  template <class Other>
  using WithScalar = Residual<typename detail::WithScalarOf<Layer, Other>::type>;

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AttentionMask Mask = NoMask>
  static void forward(const Set& parameters, InputView x, OutputView y, InferenceScratch& scratch,
                      const Mask& mask = {}) {
    detail::forward_through<Layer>(mask, parameters, x, y, scratch);
    kernels::add_to(Layer::Input::size, x.data, y.data);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class AnyTape, class AnyScratch, AttentionMask Mask = NoMask>
    requires(!std::is_same_v<AnyTape, InferenceScratch>)
  static void forward(const Set& parameters, InputView x, OutputView y, AnyTape& tape, AnyScratch& scratch,
                      const Mask& mask = {}) {
    detail::forward_through<Layer>(mask, parameters, x, y, tape, scratch);
    kernels::add_to(Layer::Input::size, x.data, y.data);
  }
  /// dx from dy, overwritten; gradients accumulate. `dx` may overlap neither `dy` nor `x`.
  template <class Set = Parameters, class AnyTape, class Gradients, class AnyScratch>
  static void backward(const Set& parameters, InputView x, AnyTape& tape, OutputGradientView dy,
                       InputGradientView dx, Gradients& gradients, AnyScratch& scratch) {
    Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
    kernels::add_to(Layer::Input::size, dy.data, dx.data);
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, class AnyTape, class Gradients, class AnyScratch>
  static void backward(const Set& parameters, InputView x, AnyTape& tape, OutputGradientView dy,
                       Gradients& gradients, AnyScratch& scratch) {
    Layer::backward(parameters, x, tape, dy, gradients, scratch);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
