// What layers one after the other are made of, with or without a normalization at the end, as PyTorch's
// nn.TransformerEncoder and nn.TransformerDecoder.
#pragma once

#include <attune/attune.hpp>

namespace conformance {

/// The normalization at the end; without parameters where there is none.
template <auto shape, bool kFinalNorm, class Scalar>
using FinalNorm = attune::LayerNorm<attune::NormShape{shape.attention.seq_len, shape.attention.d_model,
                                                      shape.epsilon, kFinalNorm, kFinalNorm},
                                    Scalar>;

template <class Layer, int kLayers, class Norm>
struct StackParameters {
  static_assert(kLayers <= 8);
  typename Layer::Parameters layers[kLayers];
  [[no_unique_address]] typename Norm::Parameters norm;

  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor& visitor, const attune::TensorPath* parent, Sets&... sets) {
    constexpr const char* kNames[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    for (int i = 0; i < kLayers; ++i) {
      const attune::TensorPath of_layer{kNames[i], parent};
      Layer::Parameters::visit(visitor, &of_layer, sets.layers[i]...);
    }
    const attune::TensorPath of_norm{"norm", parent};
    Norm::Parameters::visit(visitor, &of_norm, sets.norm...);
  }
};

template <class Layer, int kLayers, class Norm>
struct StackTape {
  typename Layer::Tape layers[kLayers];
  typename Layer::Output outputs[kLayers];
  typename Norm::Tape norm;
};

}  // namespace conformance
