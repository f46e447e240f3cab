// expect: attune::from_flat: only run time knows how many values these are; use read_flat
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use(std::span<const float> values) { return attune::from_flat<Model::Parameters>(values); }
