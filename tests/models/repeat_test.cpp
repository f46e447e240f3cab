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

TEST(Repeat, is_a_sequence_of_the_layer) {
  using Three = attune::Repeat<3, Encoder<float>>;
  using Sequence = attune::Sequential<Encoder<float>, Encoder<float>, Encoder<float>>;
  static Three::Parameters parameters;
  static Sequence::Parameters same;
  static_assert(sizeof parameters == sizeof same);
  attune::Rng rng(1);
  attune::initialize(parameters, attune::LinearDefault{}, rng);
  same.layer<0>() = parameters.layers[0];
  same.layer<1>() = parameters.layers[1];
  same.layer<2>() = parameters.layers[2];
  Three::Input x;
  check::fill(x, rng);
  Three::Output repeated, in_sequence;
  static Three::InferenceScratch scratch;
  static Sequence::InferenceScratch sequence_scratch;
  attune::infer<Three>(parameters, x, repeated, scratch, attune::CausalMask{});
  attune::infer<Sequence>(same, x, in_sequence, sequence_scratch, attune::CausalMask{});
  EXPECT_TRUE(check::same_bits(repeated, in_sequence));
}

TEST(Repeat, gradients_replace_inputs) {
  static_assert(attune::Repeat<3, Encoder<float>>::kAbilities.gradient_may_be_input);
  static_assert(sizeof(attune::Repeat<3, Encoder<float>>::Scratch) == sizeof(Encoder<float>::Scratch));
}
