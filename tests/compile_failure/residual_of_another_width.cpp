// expect: the output of a layer does not fit the input of the next
// expect: 8, 16, 8, 8>
#include <attune/layers/linear.hpp>
#include <attune/models/residual.hpp>

attune::Residual<attune::Linear<attune::LinearShape{8, 8, 16}>> layer;
