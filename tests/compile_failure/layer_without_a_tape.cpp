// expect: attune::IsLayer: the type names no Tape, Scratch or InferenceScratch
#include <attune/attune.hpp>

struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  using Parameters = attune::NoParameters;
};
attune::Residual<Own> layer;
