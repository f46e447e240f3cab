// expect: d_in and d_out must be multiples of groups
#include <attune/attune.hpp>

using Layer =
    attune::Conv1d<attune::Conv1dShape{.seq_len = 8, .d_in = 6, .d_out = 4, .kernel = 3, .groups = 3}>;
Layer::Parameters parameters;
