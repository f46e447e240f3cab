// expect: attune::IsLayer: this layer mixes tokens but takes neither a mask nor a length, so it would read
// kilobytes: 25  the way from the call to the layer
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::SequenceLength<4>{});
}
