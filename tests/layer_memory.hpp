// Memory that passes over a layer take beside its input.
#pragma once

namespace check {

/// Parameters and their gradients, output, tape and scratch of a layer.
template <class Layer>
struct LayerMemory {
  typename Layer::Parameters parameters, gradients;
  typename Layer::Output y;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;
};

}  // namespace check
