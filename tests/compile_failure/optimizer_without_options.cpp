// expect: attune::Optimizer: the type needs Scalar, Options, Coefficients and Moments<Parameters>
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Optimizer {
  using Scalar = float;
};

attune::Trainer<Layer, attune::MeanSquaredError, Optimizer> trainer;
