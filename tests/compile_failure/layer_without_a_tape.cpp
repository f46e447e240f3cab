// expect: attune::IsLayer: the type has no Tape, Scratch or InferenceScratch; each may be an empty struct
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/attune.hpp>

struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  using Parameters = attune::NoParameters;
};
attune::Residual<Own> layer;
