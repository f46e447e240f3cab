// Encoder layers one after the other, with or without a normalization at the end, as PyTorch's
// nn.TransformerEncoder.
#pragma once

#include "stack_parameters.hpp"

namespace conformance {

template <attune::EncoderLayerShape shape, int kLayers, bool kFinalNorm, class ScalarType>
struct EncoderStack {
  using Scalar = ScalarType;
  using Layer = attune::EncoderLayer<shape, Scalar>;
  using Norm = FinalNorm<shape, kFinalNorm, Scalar>;
  using Input = typename Layer::Input;
  using InputView = attune::ConstView<Input>;
  using Output = Input;
  using Parameters = StackParameters<Layer, kLayers, Norm>;
  using Tape = StackTape<Layer, kLayers, Norm>;
  using Scratch = typename Layer::Scratch;
  using InferenceScratch = typename Layer::InferenceScratch;

  template <class Mask>
  static void forward(const Parameters& parameters, InputView x, Input& y, InferenceScratch& scratch,
                      const Mask& mask) {
    typename Norm::InferenceScratch none;
    Input tokens;
    for (int i = 0; i < kLayers; ++i) {
      attune::infer<Layer>(parameters.layers[i], i == 0 ? x : InputView(tokens), y, scratch, mask);
      tokens = y;
    }
    if (kFinalNorm) Norm::forward(parameters.norm, y, y, none);
  }
  template <class Mask>
  static void forward(const Parameters& parameters, InputView x, Input& y, Tape& tape, Scratch& scratch,
                      const Mask& mask) {
    typename Norm::Scratch none;
    for (int i = 0; i < kLayers; ++i) {
      attune::forward<Layer>(parameters.layers[i], i == 0 ? x : InputView(tape.outputs[i - 1]),
                             tape.outputs[i], tape.layers[i], scratch, mask);
    }
    y = tape.outputs[kLayers - 1];
    if (kFinalNorm) Norm::forward(parameters.norm, y, y, tape.norm, none);
  }
  /// dx may be dy.
  template <class Mask>
  static void backward(const Parameters& parameters, InputView x, Tape& tape, InputView dy, Input& dx,
                       Parameters& gradients, Scratch& scratch, const Mask& mask) {
    typename Norm::Scratch none;
    for (int i = 0; i < Input::size; ++i) dx.values[i] = dy.data[i];
    if (kFinalNorm) {
      Norm::backward(parameters.norm, tape.outputs[kLayers - 1], tape.norm, dx, dx, gradients.norm, none);
    }
    for (int i = kLayers - 1; i >= 0; --i) {
      attune::backward<Layer>(parameters.layers[i], i == 0 ? x : InputView(tape.outputs[i - 1]),
                              tape.layers[i], dx, dx, gradients.layers[i], scratch, mask);
    }
  }
};

}  // namespace conformance
