// expect: attune::checked_view: an Eigen matrix must be row-major; Eigen's default is not
#include <Eigen/Core>

#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use(const Eigen::MatrixXf& samples) { return attune::checked_view<attune::Tensor<float, 2, 3>>(samples).status; }
