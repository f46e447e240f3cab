#include <attune/models/repeat.hpp>

#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/lockstep.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

template <class Scalar>
using Layer = attune::Linear<attune::LinearShape{.rows = 3, .d_in = 4, .d_out = 4}, Scalar>;
template <class Scalar>
using Encoder = attune::EncoderLayer<
    attune::EncoderLayerShape{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 5}, Scalar>;

}  // namespace

TEST(Repeat, gradients_are_derivatives) {
  check::check_layer_gradients<attune::Repeat<1, Layer<double>>>(-1, 1);
  check::check_layer_gradients<attune::Repeat<2, Layer<double>>>(-1, 1);
  check::check_layer_gradients<attune::Repeat<4, Layer<double>>>(-1, 1);
  check::check_layer_gradients<attune::Repeat<3, Encoder<double>>>(-1, 1);
}

TEST(Repeat, gradients_replace_inputs) {
  static_assert(attune::Repeat<3, Encoder<float>>::kAbilities.gradient_may_be_input);
  static_assert(sizeof(attune::Repeat<3, Encoder<float>>::Scratch) == sizeof(Encoder<float>::Scratch));
}
