// expect: attune: Pooling needs the whole sequence, so it does not run token by token; leave it out, and use
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>,
                                 attune::Pooling<attune::PoolingShape{8, 4}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
