#include <attune/models/sequential.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Linear;
using attune::LinearShape;
using attune::Sequential;

template <class Scalar>
using Embed = Linear<LinearShape{.rows = 4, .d_in = 3, .d_out = 6}, Scalar>;
template <class Scalar>
using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 4, .d_model = 6}, Scalar>;
template <class Scalar>
using Encoder =
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 6, .num_heads = 2},
                                                   .d_ff = 5,
                                                   .activation = attune::Activation::kGelu,
                                                   .norm = attune::NormPlacement::kBefore},
                         Scalar>;
template <class Scalar>
using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 6}, Scalar>;
template <class Scalar>
using Head = Linear<LinearShape{.rows = 1, .d_in = 6, .d_out = 3}, Scalar>;

template <class Scalar>
using Model = Sequential<Embed<Scalar>, Positions<Scalar>, Encoder<Scalar>, Mean<Scalar>, Head<Scalar>>;

}  // namespace

TEST(Sequential, gradients_are_derivatives) {
  check::check_layer_gradients<Sequential<Embed<double>>>(-1, 1);
  check::check_layer_gradients<Sequential<Embed<double>, attune::Silu<4, 6, double>>>(-1, 1);
  check::check_layer_gradients<Model<double>>(-1, 1);
  // A model is a layer.
  check::check_layer_gradients<
      Sequential<Sequential<Embed<double>, attune::Gelu<4, 6, double>>, Mean<double>>>(-1, 1);
}

TEST(Sequential, memory_is_that_of_its_layers_and_scratch_is_shared) {
  using M = Model<float>;
  constexpr std::size_t kTokens = sizeof(Embed<float>::Output);
  static_assert(sizeof(M::Parameters) ==
                sizeof(Embed<float>::Parameters) + sizeof(Positions<float>::Parameters) +
                    sizeof(Encoder<float>::Parameters) + sizeof(Head<float>::Parameters));
  // Of what stands between layers, backward reads the encoder's input and the head's.
  static_assert(sizeof(M::Tape) == sizeof(Encoder<float>::Tape) + sizeof(Mean<float>::Tape) + kTokens +
                                       sizeof(Mean<float>::Output));
  // And what backward does not read stands beside the encoder only where one of the two layers is it.
  static_assert(sizeof(M::Scratch) == sizeof(Encoder<float>::Scratch) + kTokens);
  static_assert(attune::Trainer<M>::memory().object() == sizeof(attune::Trainer<M>));
  EXPECT_EQ(attune::count_scalars(M::Parameters{}) * sizeof(float), sizeof(M::Parameters));
}

namespace {

// Sequential tapes input and output of this one.
template <class Scalar>
struct TapedRelu : attune::Relu<4, 6, Scalar> {
  static constexpr attune::Abilities kAbilities = attune::detail::with(
      attune::Relu<4, 6, Scalar>::kAbilities, &attune::Abilities::backward_may_read_output, false);
};
template <template <class> class Relu, class Scalar = float>
using Perceptron = Sequential<Embed<Scalar>, Relu<Scalar>, Linear<LinearShape{4, 6, 6}, Scalar>, Relu<Scalar>,
                              Relu<Scalar>, Linear<LinearShape{4, 6, 6}, Scalar>, Mean<Scalar>, Head<Scalar>>;
template <class Scalar>
using InPlace = attune::Relu<4, 6, Scalar>;

}  // namespace

TEST(Sequential, tapes_one_of_input_and_output_of_a_relu) {
  constexpr std::size_t kTokens = sizeof(Embed<float>::Output);
  static_assert(sizeof(Perceptron<TapedRelu>::Tape) - sizeof(Perceptron<InPlace>::Tape) == 2 * kTokens);
  static_assert(sizeof(Perceptron<InPlace>::Scratch) - sizeof(Perceptron<TapedRelu>::Scratch) <= kTokens);
  check::check_layer_gradients<Perceptron<InPlace, double>>(-1, 1);
}

namespace {

// y = attention(x) + x∘x/2. Inherits abilities, but its backward reads x once more behind dx.
using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 6, .num_heads = 2}, double>;
struct PlusSquares : Attention {
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch& scratch, const Call& context = {}) {
    Attention::forward(parameters, x, y, scratch, context);
    add_squares(x, y);
  }
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      Tape& tape, Scratch& scratch, const Call& context = {}) {
    Attention::forward(parameters, x, y, tape, scratch, context);
    add_squares(x, y);
  }
  static void add_squares(attune::ConstView<Input> x, attune::View<Output> y) {
    for (int i = 0; i < Input::size; ++i) y.data[i] += x.data[i] * x.data[i] / 2;
  }
  template <class Dx, attune::AnyContext Call = attune::Context<>>
  static void backward(const Parameters& parameters, attune::ConstView<Input> x, Tape& tape,
                       attune::ConstView<Output> dy, Dx&& dx, Parameters& gradients, Scratch& scratch,
                       const Call& context = {}) {
    Attention::backward(parameters, x, tape, dy, dx, gradients, scratch, context);
    if constexpr (attune::kWanted<Dx>) {
      const attune::View<Input> to(dx);
      for (int i = 0; i < Input::size; ++i) to.data[i] += x.data[i] * dy.data[i];
    }
  }
};

}  // namespace

TEST(Sequential, a_gradient_overwrites_no_input_by_an_inherited_ability) {
  static_assert(PlusSquares::kAbilities.gradient_may_be_input);
  check::check_layer_gradients<Sequential<Embed<double>, PlusSquares, Mean<double>>>(-0.5, 0.5);
  check::check_layer_gradients<Sequential<Embed<double>, attune::Repeat<2, PlusSquares>>>(-0.5, 0.5);
}

TEST(Sequential, names_tensors_by_layer) {
  using M = Sequential<Embed<float>, attune::Relu<4, 6>, Mean<float>, Head<float>>;
  static M::Parameters parameters;
  const char* expected[] = {"0", "0", "3", "3"};
  int index = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto&) {
        EXPECT_EQ(path.parent->name[0], expected[index][0]);
        ++index;
      },
      parameters);
  EXPECT_EQ(index, 4);
}

TEST(Sequential, learns_classes) {
  using M = Model<float>;
  constexpr int kBatch = 6;
  using Trainer = attune::Trainer<M, attune::CrossEntropy<>, attune::AdamW, kBatch>;
  static Trainer trainer;
  static Trainer::BatchInput x;
  Trainer::BatchTarget targets{};
  trainer.initialize(attune::LinearDefault{}, attune::Rng{2});
  attune::Rng rng(3);
  float first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    // The class is where the sum over tokens is largest.
    check::fill(x, rng);
    for (int b = 0; b < kBatch; ++b) {
      float sums[3] = {};
      for (int i = 0; i < 12; ++i) sums[i % 3] += x.values[b * 12 + i];
      targets[static_cast<std::size_t>(b)] =
          sums[1] > sums[0] ? (sums[2] > sums[1] ? 2 : 1) : (sums[2] > sums[0] ? 2 : 0);
    }
    const auto result = trainer.step(x, targets, {.learning_rate = 0.01f});
    EXPECT_TRUE(result.ok());
    (step < 20 ? first : last) += step < 20 || step >= 280 ? result.loss : 0.0f;
  }
  EXPECT_LT(last, 0.4f * first);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), check::by_policy(0x8A5221F1u, 0x7F282667u));
}

TEST(Sequential, refuses_an_invalid_class) {
  using M = Model<float>;
  using Trainer = attune::Trainer<M, attune::CrossEntropy<>, attune::AdamW, 2>;
  static Trainer trainer;
  static Trainer::BatchInput x{};
  trainer.initialize(attune::LinearDefault{}, attune::Rng{2});
  const std::uint32_t before = attune::hash_bits(trainer.parameters());
  EXPECT_EQ(trainer.step(x, Trainer::BatchTarget{0, 3}, {}).status, attune::Status::kInvalidTarget);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), before);
  EXPECT_TRUE(trainer.step(x, Trainer::BatchTarget{0, 2}, {}).ok());
}

TEST(Sequential, drops_anew_in_every_sequence_where_nothing_before_is_trained) {
  using Drop = attune::Dropout<attune::DropoutShape{.rows = 4, .d_model = 6, .probability = 0.5}>;
  using M = Sequential<Drop, Sequential<attune::Relu<4, 6>, Drop>, Linear<LinearShape{4, 6, 3}>>;
  static M::Parameters parameters, gradients;
  static M::Tape tape;
  static M::Scratch scratch;
  attune::Rng rng(1);
  attune::initialize(parameters, attune::LinearDefault{}, rng);
  attune::draw_seeds(tape, rng);
  M::Input x;
  M::Output first, second, first_again;
  check::fill(x, rng);
  M::forward(parameters, x, first, tape, scratch);
  M::backward(parameters, x, tape, first, attune::NoGradient{}, gradients, scratch);
  M::forward(parameters, x, second, tape, scratch);
  EXPECT_FALSE(check::same_bits(first, second));
  // All masks have gone on by one sequence.
  attune::skip_masks(tape, -1);
  M::forward(parameters, x, first_again, tape, scratch);
  EXPECT_TRUE(check::same_bits(first, first_again));
}

TEST(Sequential, gradients_replace_their_layers_tapes) {
  using In = Linear<LinearShape{4, 3, 6}>;
  using Out = Linear<LinearShape{4, 6, 3}>;
  static_assert(sizeof(Sequential<In, Encoder<float>, Out>::Scratch) == sizeof(Encoder<float>::Scratch));
  // A table of positions reads nothing: its input and dx are in scratch, but only while it or In runs.
  using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 4, .d_model = 6}>;
  static_assert(sizeof(Sequential<In, Positions, Encoder<float>, Out>::Scratch) ==
                sizeof(Encoder<float>::Scratch));
  static_assert(sizeof(Sequential<In, Positions>::Scratch) == sizeof(In::Output));
}

namespace {

/// A Sequential whose first layer is `Front`.
template <class Front, class... Others>
struct FromSecond {
  using Model = Sequential<Front, Others...>;
  using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 2>;
  Trainer from_input, from_second;
  typename Model::Input x;
  typename Front::Output features;

  FromSecond() {
    from_input.initialize(attune::LinearDefault{}, attune::Rng{2});
    from_second.initialize(attune::LinearDefault{}, attune::Rng{2});
    attune::Rng rng(3);
    check::fill(x, rng);
    typename Front::InferenceScratch scratch;
    attune::infer<Front>(from_input.parameters().template layer<0>(), x, features, scratch);
  }
};
/// Training from the second layer on has the bits of training the whole, and no gradient of the first.
template <class Front, class... Others>
void expect_trains_from_second() {
  static FromSecond<Front, Others...> both;
  const auto of_input = both.from_input.accumulate(both.x, 1);
  const auto of_features = both.from_second.template accumulate_from<1>(both.features, 1);
  EXPECT_TRUE(of_input.ok() && of_features.ok());
  EXPECT_EQ(of_input.loss, of_features.loss);
  auto expected = both.from_input.gradients();
  attune::for_each_tensor([](const attune::TensorPath&, auto& gradient) { gradient.set_zero(); },
                          expected.template layer<0>());
  EXPECT_TRUE(check::same_bits(expected, both.from_second.gradients()));
}

}  // namespace

TEST(Sequential, trains_from_a_layer_on) {
  using F = float;
  expect_trains_from_second<Embed<F>, Positions<F>, Encoder<F>, Mean<F>, Head<F>>();
  expect_trains_from_second<Sequential<Embed<F>, Encoder<F>>, Mean<F>, Head<F>>();
  expect_trains_from_second<Embed<F>, InPlace<F>, Linear<LinearShape{4, 6, 6}>, Mean<F>, Head<F>>();
}

TEST(Sequential, moves_on_to_the_masks_of_the_next_sequence_from_a_layer_on) {
  using Dropping = Sequential<Embed<float>, attune::Dropout<attune::DropoutShape{4, 6, 0.5}>>;
  static FromSecond<Dropping, Mean<float>, Head<float>> both;
  EXPECT_TRUE(both.from_input.accumulate(both.x, 1).ok());
  EXPECT_TRUE(both.from_second.accumulate_from<1>(both.features, 1).ok());
  EXPECT_EQ(both.from_input.accumulate(both.x, 2).loss, both.from_second.accumulate(both.x, 2).loss);
  EXPECT_EQ(both.from_second.accumulate_from<1>(both.features, 1).status, attune::Status::kFullBatch);
}
