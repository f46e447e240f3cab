// A layer with its memory, and with arguments that are drawn.
#pragma once

#include <attune/core/gradients.hpp>
#include <attune/core/rng.hpp>

#include "check.hpp"

namespace check {

template <class Layer>
struct DrawnLayer {
  typename Layer::Parameters parameters, gradients;
  typename Layer::Input x, dx;
  typename Layer::Output y, dy;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;

  /// Parameters, x and dy by a generator, and gradients of 0.
  void draw(attune::Rng& rng) {
    fill_set(parameters, rng);
    fill(x, rng);
    fill(dy, rng);
    attune::set_zero(gradients);
  }
};
/// A layer with a second input.
template <class Layer>
struct DrawnDecoder : DrawnLayer<Layer> {
  typename Layer::Memory memory, d_memory;

  void draw(attune::Rng& rng) {
    fill(memory, rng);
    DrawnLayer<Layer>::draw(rng);
  }
};

}  // namespace check
