// expect: attune::Loss: there is no sum(y, target, dy)
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {
  static constexpr bool kMeanOverBatch = true;
};

attune::Trainer<Layer, Loss> trainer;
