// expect: attune::IsLayer: declare abilities in static constexpr attune::Abilities kAbilities{.takes_length =
#include <attune/attune.hpp>

struct Own : attune::Linear<attune::LinearShape{4, 8, 8}> {
  static constexpr bool kTakesLength = true;
};
attune::Sequential<Own>::Tape tape;
