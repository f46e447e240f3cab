// expect: attune::sample: logits of another scalar than the scratch's
// errors: 2  what cannot be read as the scratch's scalar is told, too
#include <attune/attune.hpp>

attune::Sampled use(const attune::Tensor<double, 1, 5>& logits, attune::Rng& rng,
                    attune::SamplingScratch<5>& scratch) {
  return attune::sample(logits, {}, rng, scratch);
}
