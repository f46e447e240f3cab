// expect: attune::check_gradients: finite differences need double; make the layer's Scalar a template
// parameter and check that of double
#include <attune/layers/linear.hpp>
#include <attune/training/check_gradients.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;

bool use() { return attune::check_gradients<Layer>().ok(); }
