// expect: attune::IsLayer: what a layer can do stands in one struct, static constexpr attune::Abilities kAbilities
#include <attune/attune.hpp>

struct Own : attune::Linear<attune::LinearShape{4, 8, 8}> {
  static constexpr bool kTakesLength = true;
};
attune::Sequential<Own>::Tape tape;
