// expect: attune: only a causal Conv1d of stride 1 runs token by token; set .causal in Conv1dShape, as the
#include <attune/attune.hpp>

using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{8, 4, 4}>,
    attune::Conv1d<attune::Conv1dShape{.seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
