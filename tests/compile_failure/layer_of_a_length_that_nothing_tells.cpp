// expect: attune::IsLayer: kAbilities says that the layer takes a length or a mask, but no context
// kilobytes: 12  the way from the call to the layer
#include <attune/attune.hpp>

struct Blurred {
  using Scalar = float;
  using Input = attune::Tensor<float, 4, 8>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static constexpr attune::Abilities kAbilities{.takes_length = true};
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, InferenceScratch&);
  static void forward(const Parameters&, attune::ConstView<Input>, attune::View<Output>, Tape&, Scratch&);
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>,
                       auto&& dx, Parameters&, Scratch&);
};
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  Model::forward(parameters, x, y, scratch);
}
