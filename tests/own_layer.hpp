// What layers of one's own have that keep neither parameters nor memory.
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/execution/layer.hpp>

/// Everything but a backward.
template <int rows, int cols>
struct OwnLayer {
  using Scalar = float;
  using Input = attune::Tensor<float, rows, cols>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, InferenceScratch&);
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, Tape&, Scratch&);
};
