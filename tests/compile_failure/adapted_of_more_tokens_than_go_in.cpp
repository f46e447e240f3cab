// expect: attune::Adapted: a layer multiplies more tokens than its input and output have; list it in the
// kilobytes: 20  the way from the call to the layer
#include <attune/attune.hpp>

// A layer of one's own, which takes one row for four tokens.
struct FourTokens {
  using Own = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
  using Scalar = float;
  using Input = attune::Tensor<float, 1, 32>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = Own::ParametersOf<Matrix, Vector>;
  using Parameters = Own::Parameters;
  using Tape = Own::Tape;
  using Scratch = Own::Scratch;
  using InferenceScratch = Own::InferenceScratch;

  static auto tokens(auto x) { return attune::MatrixView<std::remove_pointer_t<decltype(x.data)>, 4, 8>(x.data); }
  static void forward(const auto& parameters, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    Own::forward(parameters, tokens(x), tokens(y));
  }
  static void backward(const auto& parameters, attune::ConstView<Input> x, Tape& tape, attune::ConstView<Output> dy, auto&&,
                       auto& gradients, Scratch& scratch) {
    Own::backward(parameters, tokens(x), tape, tokens(dy), attune::NoGradient{}, gradients, scratch);
  }
};
constexpr FourTokens::Parameters kFourTokens{};
using Model = attune::Adapted<FourTokens, kFourTokens, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;

void infer(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y, Model::InferenceScratch& scratch) {
  Model::forward(parameters, x, y, scratch);
}
