// expect: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
// errors: 3  the constraint is told, too, and with GCC the name behind the type
#include "own_layer.hpp"

struct Own : OwnLayer<2, 3> {};
attune::Sequential<Own>::Tape tape;
