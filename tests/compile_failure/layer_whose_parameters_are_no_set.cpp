// expect: attune::IsLayer: its Parameters have no ATTUNE_FIELDS(Weight(w), ...) that lists their members
// errors: 3  the constraint is told, too, and with GCC the name behind the type
#include <attune/attune.hpp>

struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  struct Parameters {
    float slope;
  };
};
attune::Sequential<Own>::Tape tape;
