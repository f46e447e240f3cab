// expect: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
#include "own_layer.hpp"

struct Own : OwnLayer<2, 3> {
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>,
                       attune::View<Input>, Parameters&, Scratch&);
};
attune::Repeat<2, Own>::Tape tape;
