// expect: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
#include "own_layer.hpp"

struct Own : OwnLayer<2, 3> {};
attune::Sequential<Own>::Tape tape;
