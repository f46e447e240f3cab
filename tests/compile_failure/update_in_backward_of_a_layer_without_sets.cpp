// expect: attune::UpdateInBackward: the model, and each layer in it, needs ParametersOf<Matrix, Vector>
#include <attune/attune.hpp>

struct ByHand {
  using Own = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
  using Scalar = float;
  using Input = Own::Input;
  using Output = Own::Output;
  using Parameters = Own::Parameters;
  using Tape = Own::Tape;
  using Scratch = Own::Scratch;
  using InferenceScratch = Own::InferenceScratch;
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, InferenceScratch&);
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, Tape&, Scratch&);
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>, auto&& dx, Parameters&,
                       Scratch&) {
    (void)dx;
  }
};
attune::Trainer<ByHand, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
