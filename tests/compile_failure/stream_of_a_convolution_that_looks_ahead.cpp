// expect: attune: Conv1d runs token by token where it is causal and its stride is 1
#include <attune/attune.hpp>

using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{8, 4, 4}>,
    attune::Conv1d<attune::Conv1dShape{.seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
