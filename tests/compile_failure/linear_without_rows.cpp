// expect: attune::Linear: rows, d_in and d_out must be positive; set all three in LinearShape
#include <attune/layers/linear.hpp>

attune::Linear<attune::LinearShape{.d_in = 4, .d_out = 4}>::Input x;
