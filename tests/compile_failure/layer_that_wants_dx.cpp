// expect: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
// errors: 3  the constraint is told, too, and with GCC the name behind the type
#include <attune/attune.hpp>

struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, InferenceScratch&);
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, Tape&, Scratch&);
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>,
                       attune::View<Input>, Parameters&, Scratch&);
};
attune::Repeat<2, Own>::Tape tape;
