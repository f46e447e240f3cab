// expect: attune::sample: logits and scratch have different scalar types; use SamplingScratch<vocabulary
// errors: 2  what cannot be read as the scratch's scalar is told, too
#include <attune/attune.hpp>

attune::Sampled use(const attune::Tensor<double, 1, 5>& logits, attune::Rng& rng,
                    attune::SamplingScratch<5>& scratch) {
  return attune::sample(logits, {}, rng, scratch);
}
