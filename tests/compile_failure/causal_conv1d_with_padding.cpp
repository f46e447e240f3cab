// expect: leave padding at 0
#include <attune/attune.hpp>

using Layer = attune::Conv1d<attune::Conv1dShape{
    .seq_len = 8, .d_in = 6, .d_out = 4, .kernel = 3, .padding = 1, .causal = true}>;
Layer::Parameters parameters;
