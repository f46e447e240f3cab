// expect: attune::Loss: sum(y, target, dy) must return a LossSum of the model's scalar
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {
  static constexpr bool kMeanOverBatch = true;
  static float sum(attune::ConstView<Layer::Output>, attune::ConstView<Layer::Output>,
                   attune::View<Layer::Output>) {
    return 0;
  }
};

attune::Trainer<Layer, Loss> trainer;
