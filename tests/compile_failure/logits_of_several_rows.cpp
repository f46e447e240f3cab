// expect: attune::sample: logits must be one row of as many as SamplingScratch has room for
#include <attune/attune.hpp>

attune::Tensor<float, 4, 10> logits;
attune::SamplingScratch<10> scratch;
attune::Rng rng(1);
const auto next = attune::sample(logits, {}, rng, scratch);
