// A decoder layer as a layer of one input, for what takes no other.
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/execution/layer.hpp>

namespace check {

/// Memory and tokens of a decoder layer, one below the other.
template <class DecoderLayer>
struct StackedDecoder {
  using Layer = DecoderLayer;
  using Scalar = typename Layer::Scalar;
  static constexpr int kMemory = Layer::Memory::rows, kTokens = Layer::Output::rows;
  using Input = attune::Tensor<Scalar, kMemory + kTokens, Layer::Output::cols>;
  using Output = typename Layer::Output;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename Layer::template ParametersOf<Matrix, Vector>;
  using Parameters = typename Layer::Parameters;
  template <class Gradients>
  using TapeOf = typename Layer::template TapeOf<Gradients>;
  using Tape = typename Layer::Tape;
  template <class Gradients>
  using ScratchOf = typename Layer::template ScratchOf<Gradients>;
  using Scratch = typename Layer::Scratch;
  using InferenceScratch = typename Layer::InferenceScratch;

  static auto memory(auto x) { return x.template rows_at<kMemory>(0); }
  static auto target(auto x) { return x.template rows_at<kTokens>(kMemory); }

  static void forward(const auto& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      auto&... memory_of_call) {
    Layer::forward(parameters, target(x), memory(x), y, memory_of_call...);
  }
  static void backward(const auto& parameters, attune::ConstView<Input> x, auto& tape,
                       attune::ConstView<Output> dy, auto&& dx, auto& gradients, auto& scratch) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      const attune::View<Input> to(dx);
      Layer::backward(parameters, target(x), memory(x), tape, dy, target(to), memory(to), gradients, scratch);
    } else {
      Layer::backward(parameters, target(x), memory(x), tape, dy, attune::NoGradient{}, attune::NoGradient{},
                      gradients, scratch);
    }
  }
};

}  // namespace check
