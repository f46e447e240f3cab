// expect: attune: a layer of the model has no Stream<tokens, cache>: the same layer for that many tokens if
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
