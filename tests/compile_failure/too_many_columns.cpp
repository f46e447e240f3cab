// expect: attune::MatrixView: more columns asked for than there are
#include <attune/core/tensor.hpp>

attune::Tensor<float, 2, 3> tensor{};
auto columns = attune::view(tensor).columns<4>(0);
