// expect: attune: a layer of the model would run token by token as another one
#include <attune/attune.hpp>

struct Own : attune::Linear<attune::LinearShape{8, 4, 4}> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
