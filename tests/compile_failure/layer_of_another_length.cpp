// expect: attune::IsLayer: the type has no Stream<tokens, cache>: the same layer for that many tokens if
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {
  template <int tokens>
  using WithLength = WholeLayer<tokens, 4>;
};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>, Own>;
attune::Trainer<Model, attune::MeanSquaredError> trainer;
