// expect: attune::AvgPool1d: the window is longer than the sequence
#include <attune/attune.hpp>

attune::AvgPool1d<attune::Pool1dShape{.seq_len = 4, .d_model = 2, .kernel = 5}>::Output y;
