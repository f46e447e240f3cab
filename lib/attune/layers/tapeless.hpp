// The base of layers that keep nothing from forward for backward, besides x: inference and training are one
// function, forward(parameters, x, y, context).
#pragma once

#include <attune/execution/layer.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The memory of `Self`, and its calls with that memory. They are found by `using Tapeless<Self>::forward`.
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
};

}  // namespace ATTUNE_NAMESPACE::detail
