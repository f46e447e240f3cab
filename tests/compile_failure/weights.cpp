// Misuse of attune/weights that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: adapted_of_more_tokens_than_go_in
// error: attune::Adapted: a layer multiplies more tokens than its input and output have; list it in the
// kilobytes: 20  the way from the call to the layer
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

  static auto tokens(auto x) {
    return attune::MatrixView<std::remove_pointer_t<decltype(x.data)>, 4, 8>(x.data);
  }
  static void forward(const auto& parameters, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    Own::forward(parameters, tokens(x), tokens(y));
  }
  static void backward(const auto& parameters, attune::ConstView<Input> x, Tape& tape,
                       attune::ConstView<Output> dy, auto&&, auto& gradients, Scratch& scratch) {
    Own::backward(parameters, tokens(x), tape, tokens(dy), attune::NoGradient{}, gradients, scratch);
  }
};
constexpr FourTokens::Parameters kFourTokens{};
using Model =
    attune::Adapted<FourTokens, kFourTokens, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;

void infer(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
           Model::InferenceScratch& scratch) {
  Model::forward(parameters, x, y, scratch);
}

// case: quantized_biases
// error: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
void infer(const Layer::ParametersOf<attune::Int8Weights>& parameters, const Layer::Input& x,
           Layer::Output& y) {
  Layer::forward(parameters, x, y);
}

// case: quantized_weights_as_gradients
// error: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
// errors: 2  the product that cannot write to them is told, too
// kilobytes: 16  the way from the call to the layer
// ParametersOf<Tensor>, then quantize() it
using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Narrow = Layer::ParametersOf<attune::Int8Weights, attune::Tensor>;
void learn(const Layer::Parameters& parameters, const Layer::Input& x, const Layer::Output& dy,
           Narrow& gradients) {
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
}

// case: quantized_weights_read_into
// error: attune: 8- and 16-bit weights are constants; train ParametersOf<Tensor>, then quantize() it into
// kilobytes: 27  the way from the call to the layer
using Layer = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status load(std::string_view file,
                    Layer::ParametersOf<attune::Int8Weights, attune::Tensor>& parameters) {
  return attune::read_safetensors<attune::PyTorchModule<Layer>>(file, parameters);
}

// case: packed_weights_of_doubles
// error: packed int8 weights need a model in float; use Int8Weights for double
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}, double>;
static Layer::ParametersOf<attune::PackedInt8Weights, attune::Tensor> base;

// case: copy_of_another_layers_parameters
// error: attune: a tensor has different shapes in these sets of parameters; both must belong to one layer
void grow(const attune::Linear<attune::LinearShape{1, 4, 3}>::Parameters& from,
          attune::Linear<attune::LinearShape{1, 4, 5}>::Parameters& to) {
  attune::copy_parameters(from, to);
}

// case: quantized_weights_of_another_layer
// error: attune: a tensor has different shapes in these sets of parameters; both must belong to one layer
// kilobytes: 17  the way from the call to the tensor
using Layer = attune::Linear<attune::LinearShape{1, 4, 5, false}>;
attune::Status load(const attune::Linear<attune::LinearShape{1, 4, 3, false}>::Parameters& from,
                    Layer::ParametersOf<attune::Int8Weights, attune::Tensor>& to) {
  return attune::quantize(from, to);
}

// case: packed_weights_of_another_layer
// error: attune: a tensor has different shapes in these sets of parameters; both must belong to one layer
// kilobytes: 17  the way from the call to the tensor
using Layer = attune::Linear<attune::LinearShape{1, 4, 5, false}>;
using Other = attune::Linear<attune::LinearShape{1, 4, 3, false}>;
attune::Status load(const Layer::ParametersOf<attune::Int8Weights, attune::Tensor>& from,
                    Other::ParametersOf<attune::PackedInt8Weights, attune::Tensor>& to) {
  return attune::pack(from, to);
}
