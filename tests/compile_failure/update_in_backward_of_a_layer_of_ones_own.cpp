// expect: attune::UpdateInBackward: backward of one of the layers may read parameters behind their gradients
#include <attune/attune.hpp>

// It inherits a backward that could, and does not say so.
struct Own : attune::Linear<attune::LinearShape{4, 8, 8}> {
  static constexpr bool kUpdatesInBackward = false;
};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{4, 8, 8}>, attune::Residual<Own>>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
