// Layers of one's own, and an encoder beside them.
#pragma once

#include <attune/attune.hpp>

#include "../own_layer.hpp"

/// OwnLayer with a backward.
template <int rows, int cols>
struct WholeLayer : OwnLayer<rows, cols> {
  using Of = OwnLayer<rows, cols>;
  static void backward(const typename Of::Parameters&, attune::ConstView<typename Of::Input>,
                       typename Of::Tape&, attune::ConstView<typename Of::Output>, auto&& dx,
                       typename Of::Parameters&, typename Of::Scratch&);
};

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
