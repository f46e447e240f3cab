// expect: attune: a member is missing from ATTUNE_FIELDS
#include <attune/attune.hpp>

struct Parameters {
  attune::Tensor<float, 2, 3> weight;
  attune::Tensor<float, 1, 3> bias;
  ATTUNE_FIELDS(Weight(weight))
};
const int scalars = attune::count_scalars(Parameters{});
