// expect: attune: a layer's Stream is another layer: for its own number of tokens it must be the layer
#include <attune/attune.hpp>

struct Own : attune::Linear<attune::LinearShape{8, 4, 4}> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
