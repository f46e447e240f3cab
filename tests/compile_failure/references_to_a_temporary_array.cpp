// expect: attune: the values do not outlive the references to them; store them in a variable
#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use() { return attune::from_flat<Model::ParametersOf<attune::Reference>>(std::array<float, 9>{}); }
