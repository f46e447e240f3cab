// expect: attune: output, target and gradient of a loss must have one shape
#include <attune/training/loss.hpp>

attune::Tensor<float, 2, 4> y{}, dy{};
attune::Tensor<float, 4, 2> target{};
float loss = attune::MeanSquaredError::forward(y, target, dy);
