// What most layers of one's own have: everything but a backward.
#pragma once

#include <attune/attune.hpp>

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
/// The same with a backward.
template <int rows, int cols>
struct WholeLayer : OwnLayer<rows, cols> {
  using Of = OwnLayer<rows, cols>;
  static void backward(const typename Of::Parameters&, attune::ConstView<typename Of::Input>,
                       typename Of::Tape&, attune::ConstView<typename Of::Output>, auto&& dx,
                       typename Of::Parameters&, typename Of::Scratch&);
};

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
