// expect: attune: the flat array and the parameters have different scalar types
// errors: 2  a matrix and a bias of this scalar
// kilobytes: 11  the way from the call to the layer
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use(std::span<const double> values, Model::Parameters& parameters) {
  return attune::read_flat(values, parameters);
}
