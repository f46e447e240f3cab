// expect: attune::Adapted: no weight of the layer has one of these roles; name others in LowRank
// errors: 2  then there is nothing to train, either
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;  // no queries, no values
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::Adapted<Layer, kLayer, attune::LowRank{.rank = 2}>> trainer;
