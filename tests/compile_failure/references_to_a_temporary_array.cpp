// expect: attune: these values are gone before the references to them are used; give them a name
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use() { return attune::from_flat<Model::ParametersOf<attune::Reference>>(std::array<float, 9>{}); }
