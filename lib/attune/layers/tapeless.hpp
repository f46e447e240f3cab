// The bases of layers that keep nothing from forward for backward, besides x: inference and training are one
// function.
#pragma once

#include <attune/execution/layer.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The memory of `Self`, and its calls with that memory: `Self` has forward(parameters, x, y, context) and
/// backward(parameters, x, dy, dx, gradients, context). They are found by `using Base::forward`.
template <class Self>
struct Tapeless {
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  /// Inference.
  template <class Layer = Self, class Set = typename Layer::Parameters, AnyContext Call = Context<>>
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<typename Layer::Input> x,
                                      View<typename Layer::Output> y, typename Layer::InferenceScratch&,
                                      const Call& context = {}) {
    return Layer::forward(parameters, x, y, context);
  }
  /// Training: the same.
  template <class Layer = Self, class Set = typename Layer::Parameters, AnyContext Call = Context<>>
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<typename Layer::Input> x,
                                      View<typename Layer::Output> y, typename Layer::Tape&,
                                      typename Layer::Scratch&, const Call& context = {}) {
    return Layer::forward(parameters, x, y, context);
  }
  /// Overwrites dx, unless NoGradient; adds to the gradients.
  template <class Layer = Self, class Set = typename Layer::Parameters, class Dx, class Gradients,
            AnyContext Call = Context<>>
  ATTUNE_INLINE static void backward(const Set& parameters, ConstView<typename Layer::Input> x,
                                     const typename Layer::Tape&, ConstView<typename Layer::Output> dy,
                                     Dx&& dx, Gradients& gradients, typename Layer::Scratch&,
                                     const Call& context = {}) {
    Layer::backward(parameters, x, dy, dx, gradients, context);
  }
};

/// The same for a layer without parameters, which has forward(x, y, context) and backward(x, dy, dx,
/// context).
template <class Self>
struct Unparameterized {
  using Parameters = NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  template <class Layer = Self, AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<typename Layer::Input> x, View<typename Layer::Output> y,
                      InferenceScratch&, const Call& context = {}) {
    Layer::forward(x, y, context);
  }
  template <class Layer = Self, AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<typename Layer::Input> x, View<typename Layer::Output> y,
                      Tape&, Scratch&, const Call& context = {}) {
    Layer::forward(x, y, context);
  }
  template <class Layer = Self, class Dx, AnyContext Call = Context<>>
  ATTUNE_INLINE static void backward(const Parameters&, ConstView<typename Layer::Input> x, const Tape&,
                                     ConstView<typename Layer::Output> dy, Dx&& dx, Parameters&, Scratch&,
                                     const Call& context = {}) {
    if_wanted<typename Layer::Input>(
        dx, [&](auto to) ATTUNE_INLINE_LAMBDA { Layer::backward(x, dy, to, context); });
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
