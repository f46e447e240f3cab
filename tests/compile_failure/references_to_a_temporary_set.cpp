// expect by gcc: use of deleted function
// expect by clang: call to deleted function 'references_to'
#include <attune/attune.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
auto references = attune::references_to<Layer>(Layer::Parameters{});
