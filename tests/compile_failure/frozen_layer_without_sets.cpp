// expect: attune::Frozen: behind what is trained, the layer, and each one in it, needs ParametersOf<Matrix, Vector>
// kilobytes: 16  the way from the call to the layer
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
constexpr ByHand::Parameters kByHand{};
using Model = attune::Sequential<ByHand::Own, attune::Frozen<ByHand, kByHand>>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }
