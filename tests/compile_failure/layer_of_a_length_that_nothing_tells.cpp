// expect: attune::IsLayer: kAbilities declares a length or a mask, but no context; set .takes_context and
// kilobytes: 12  the way from the call to the layer
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {
  static constexpr attune::Abilities kAbilities{.takes_length = true};
};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  Model::forward(parameters, x, y, scratch);
}
