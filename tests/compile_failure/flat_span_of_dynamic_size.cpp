// expect: attune::from_flat: the number of values is known only at run time; use read_flat
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use(std::span<const float> values) { return attune::from_flat<Model::Parameters>(values); }
