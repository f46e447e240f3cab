// expect: attune: Pooling needs the whole sequence; a model that runs token by token
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>,
                                 attune::Pooling<attune::PoolingShape{8, 4}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
