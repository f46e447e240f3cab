// expect: attune::IsLayer: there is a mask or a length, but tokens meet in this layer and it takes neither
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::SequenceLength<4>{});
}
