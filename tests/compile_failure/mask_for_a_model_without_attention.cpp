// expect: attune: no layer of this model uses a mask; leave it out, or add attention or pooling
#include <attune/attune.hpp>

using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>,
                                 attune::Relu<4, 8>>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::KeyPaddingMask<4>{});
}
