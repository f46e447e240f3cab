// expect: attune::sample: logits of another scalar than the scratch's
#include <attune/attune.hpp>

attune::Sampled use(const attune::Tensor<double, 1, 5>& logits, attune::Rng& rng,
                    attune::SamplingScratch<5>& scratch) {
  return attune::sample(logits, {}, rng, scratch);
}
