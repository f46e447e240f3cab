#include <attune/execution/layer.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::ConstView, attune::View;

// A layer with nothing but what a layer must have: y = slope ∘ x².
template <class ScalarType>
struct Squares {
  static constexpr attune::Abilities kAbilities{.mixes_tokens = false};
  using Scalar = ScalarType;
  using Input = attune::Tensor<Scalar, 3, 4>;
  using Output = Input;
  struct Parameters {
    attune::Tensor<Scalar, 1, 4> slope;
    ATTUNE_FIELDS(Weight(slope))
  };
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  static void forward(const Parameters& p, ConstView<Input> x, View<Output> y, InferenceScratch&) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 4; ++j) y(i, j) = p.slope(0, j) * x(i, j) * x(i, j);
    }
  }
  static void forward(const Parameters& p, ConstView<Input> x, View<Output> y, Tape&, Scratch&) {
    InferenceScratch none;
    forward(p, x, y, none);
  }
  static void backward(const Parameters& p, ConstView<Input> x, Tape&, ConstView<Output> dy, auto&& dx,
                       Parameters& gradients, Scratch&) {
    for (int j = 0; j < 4; ++j) {
      Scalar sum = 0;
      for (int i = 0; i < 3; ++i) {
        sum += x(i, j) * x(i, j) * dy(i, j);
        if constexpr (attune::kWanted<decltype(dx)>) dx(i, j) = 2 * p.slope(0, j) * x(i, j) * dy(i, j);
      }
      gradients.slope(0, j) += sum;
    }
  }
};

template <class Scalar>
using Attention = attune::MultiHeadAttention<attune::AttentionShape{3, 4, 2}, Scalar>;
template <class Scalar>
using Norm = attune::RmsNorm<attune::NormShape{3, 4}, Scalar>;
// As the network of an encoder layer, where it neither writes over its input nor its gradient.
template <class Scalar, attune::NormPlacement placement>
using Encoder = attune::EncoderLayerOf<Attention<Scalar>, Squares<Scalar>, Norm<Scalar>,
                                       attune::BranchOptions{placement}>;
template <class Scalar>
using Model = attune::Sequential<attune::Linear<attune::LinearShape{3, 2, 4}, Scalar>, Squares<Scalar>,
                                 Encoder<Scalar, attune::NormPlacement::kAfter>>;

// The same functions as the base; only the second one says so.
struct Derived : Attention<float> {};
struct Named : Attention<float> {
  using SteppedAs = Named;
};

static_assert(attune::IsLayer<Squares<float>> && attune::IsLayer<Model<double>>);
static_assert(!attune::IsLayer<int> && !attune::IsLayer<attune::LinearShape>);
static_assert(!attune::detail::TakesMask<Squares<float>> && attune::detail::TakesMask<Attention<float>>);
static_assert(attune::detail::TakesMask<attune::Pooling<attune::PoolingShape{3, 4}>>);
static_assert(!attune::detail::TakesMask<
              attune::Sequential<attune::Linear<attune::LinearShape{3, 2, 4}>, Squares<float>>>);

}  // namespace

TEST(Layer, user_layers_have_gradients_that_are_derivatives) {
  check::check_layer_gradients<Squares<double>>(-1, 1);
}

TEST(Layer, user_layers_fit_into_models_and_layers) {
  check::check_layer_gradients<Encoder<double, attune::NormPlacement::kAfter>>(-1, 1);
  check::check_layer_gradients<Encoder<double, attune::NormPlacement::kBefore>>(-1, 1);
  check::check_layer_gradients<Model<double>>(-1, 1);
}

TEST(Layer, user_layers_skip_hidden_tokens) {
  attune::KeyPaddingMask<3> mask;
  EXPECT_EQ(mask.set_length(2), attune::Status::kOk);
  check::check_layer_gradients<Model<double>>(-1, 1);
  static Model<float>::Parameters parameters;
  static Model<float>::Input x;
  static Model<float>::Output masked, all;
  static Model<float>::InferenceScratch scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  attune::infer<Model<float>>(parameters, x, masked, scratch, mask);
  Model<float>::forward(parameters, x, all, scratch);
  EXPECT_FALSE(check::same_bits(masked, all));
}

TEST(Layer, without_initialize_has_weights_drawn) {
  Squares<float>::Parameters parameters{};
  attune::Rng rng(1);
  attune::initialize(parameters, attune::Normal{}, rng);
  EXPECT_NE(parameters.slope.values[0], 0.0f);
}

TEST(Layer, inherits_abilities_if_it_says_that_it_is_the_same) {
  EXPECT_TRUE(attune::detail::OutputMayBeInput<Attention<float>>);
  EXPECT_TRUE(attune::detail::RecomputesTape<Attention<float>>);
  EXPECT_FALSE(attune::detail::OutputMayBeInput<Derived>);
  EXPECT_FALSE(attune::detail::RecomputesTape<Derived>);
  EXPECT_TRUE(attune::detail::OutputMayBeInput<Named>);
  EXPECT_TRUE(attune::detail::RecomputesTape<Named>);
  EXPECT_TRUE(attune::detail::UpdatesInPlace<Norm<float>>);
  EXPECT_FALSE(attune::detail::UpdatesInPlace<Attention<float>>);
}

TEST(Layer, takes_a_part_of_rows_of_ids_and_of_no_gradient) {
  using attune::detail::part_of;
  using Part = attune::Tensor<float, 2, 3>;
  attune::Tensor<float, 5, 3> all{};
  const View<Part> part = part_of<Part>(View<attune::Tensor<float, 5, 3>>(all), 1);
  part(0, 2) = 7;
  EXPECT_EQ(all(1, 2), 7);
  const std::array<int, 5> ids{4, 3, 2, 1, 0};
  const auto two = part_of<std::array<int, 2>>(ConstView<std::array<int, 5>>(ids), 3);
  EXPECT_EQ(two[0], 1);
  EXPECT_EQ(two[1], 0);
  static_assert(!attune::kWanted<decltype(part_of<Part>(attune::NoGradient{}, 1))>);
}
