// expect: attune::sample: logits must be [1, vocabulary] of SamplingScratch
#include <attune/attune.hpp>

attune::Tensor<float, 4, 10> logits;
attune::SamplingScratch<10> scratch;
attune::Rng rng(1);
const auto next = attune::sample(logits, {}, rng, scratch);
