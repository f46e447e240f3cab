// A layer of one's own, whose set of parameters says what it has in one line, in every form that a library's
// layer has.
#include <attune/attune.hpp>

#include "check.hpp"

namespace {

/// y = x where x > 0, else slope·x.
struct PRelu {
  using Scalar = float;
  using Input = attune::Tensor<Scalar, 4, 6>;
  using Output = Input;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    [[no_unique_address]] Vector<Scalar, 1, 6> slope;
    ATTUNE_FIELDS(Weight(slope))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  static constexpr attune::Abilities kAbilities{.mixes_tokens = false};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, InferenceScratch&) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 6; ++j) y(i, j) = x(i, j) > 0 ? x(i, j) : p.slope.data()[j] * x(i, j);
    }
  }
  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, Tape&, Scratch&) {
    InferenceScratch none;
    forward(p, x, y, none);
  }
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 6; ++j) {
        if constexpr (attune::detail::kTrained<decltype(gradients.slope)>) {
          if (!(x(i, j) > 0)) gradients.slope.data()[j] += x(i, j) * dy(i, j);
        }
        if constexpr (attune::kAsked<decltype(dx)>) {
          dx(i, j) = x(i, j) > 0 ? dy(i, j) : p.slope.data()[j] * dy(i, j);
        }
      }
    }
  }
};

using Linear = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 6, .d_out = 6}>;
using Model = attune::Sequential<Linear, PRelu, Linear>;

constexpr Model::Parameters kConstants = [] {
  Model::Parameters constants{};
  int i = 0;
  attune::for_each_tensor(
      [&i](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) value = static_cast<float>(i++ * 37 % 19 - 9) / 16;
      },
      constants);
  return constants;
}();

template <class Set>
Model::Output infer(const Set& set, const Model::Input& x) {
  Model::InferenceScratch scratch;
  Model::Output y;
  Model::forward(set, x, y, scratch);
  return y;
}
Model::Input input() {
  attune::Rng rng(3);
  Model::Input x;
  check::fill(x, rng);
  return x;
}

// The loss falls, from that of the constants.
template <class Trained, class Plan = attune::Streaming>
void expect_training() {
  static attune::Trainer<Trained, attune::MeanSquaredError, attune::AdamW, 1, Plan> trainer;
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  const Model::Input x = input();
  const float first = trainer.step(x, x, {.learning_rate = 0.01f}).loss;
  for (int step = 0; step < 50; ++step) (void)trainer.step(x, x, {.learning_rate = 0.01f});
  EXPECT_LT(trainer.step(x, x, {.learning_rate = 0.01f}).loss, first);
}

}  // namespace

TEST(OwnSet, sits_elsewhere) {
  constexpr auto elsewhere = attune::references_to<Model>(kConstants);
  EXPECT_TRUE(check::same_bits(infer(elsewhere, input()), infer(kConstants, input())));
}

TEST(OwnSet, stays_floats_beside_weights_of_8_and_16_bits) {
  const auto expect_near = [](const auto& set) {
    const Model::Output expected = infer(kConstants, input()), y = infer(set, input());
    for (int i = 0; i < Model::Output::size; ++i)
      EXPECT_TRUE(std::abs(y.values[i] - expected.values[i]) < 0.05f);
  };
  Model::ParametersOf<attune::Int8Weights, attune::Tensor> int8;
  EXPECT_EQ(attune::quantize(kConstants, int8), attune::Status::kOk);
  expect_near(int8);
  Model::ParametersOf<attune::Bfloat16Weights, attune::Tensor> bfloat16;
  EXPECT_EQ(attune::quantize(kConstants, bfloat16), attune::Status::kOk);
  expect_near(bfloat16);
  Model::ParametersOf<attune::Float16Weights, attune::Tensor> float16;
  EXPECT_EQ(attune::quantize(kConstants, float16), attune::Status::kOk);
  expect_near(float16);
}

TEST(OwnSet, trains_as_part_of_what_is_trained) {
  using BiasesAndNorms = attune::BiasesAndNorms<Model, kConstants>;
  static_assert(attune::count_scalars(BiasesAndNorms::Parameters{}) == 3 * 6);
  expect_training<BiasesAndNorms>();
}

TEST(OwnSet, is_constant_between_adapted_weights) {
  using Adapted =
      attune::Adapted<Model, kConstants, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;
  static_assert(attune::count_scalars(Adapted::Parameters{}) == 2 * 2 * (6 + 6));
  expect_training<Adapted>();
}
