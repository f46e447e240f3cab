// expect: attune::Optimizer: the type lacks kMoments, moments.reset(), for_each_with_moments(visitor
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Optimizer : attune::AdamW {
  static void update();
};

attune::Trainer<Layer, attune::MeanSquaredError, Optimizer> trainer;
