// expect: attune: a layer's forward and backward take a Context, not a mask; call attune::infer<Layer>
// kilobytes: 14  the overloads that do not fit
// errors: 2  the call fits no forward, too
#include <attune/attune.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{4, 8, 2}>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch, attune::CausalMask{});
}
