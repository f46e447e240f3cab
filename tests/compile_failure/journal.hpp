// A trainer whose training is journaled.
#pragma once

#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
template <int batch>
using TrainerOf = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, batch>;
struct Sink {
  void operator()(const char* bytes, std::size_t count);
};
