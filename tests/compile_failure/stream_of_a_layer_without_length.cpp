// expect: attune: a layer of the model does not say how it runs token by token: give it Stream<tokens, cache>
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
