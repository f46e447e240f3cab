// LoRA: constant weights with trained products of low rank beside them, in layers and models.
#include <attune/models/frozen.hpp>
#include <attune/weights/roles.hpp>

#include <attune/attention/mask.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "gradient_suite.hpp"
#include "models/stacked_decoder.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::Adapted, attune::LowRank, attune::Role, attune::Sequential;

constexpr int kTokens = 5, kWidth = 6;
constexpr LowRank kQueriesAndValues{.rank = 2};
constexpr LowRank kAll{.rank = 3, .roles = Role::kEverything, .alpha = 4.5};
constexpr LowRank kAllAndVectors{.rank = 2, .roles = Role::kEverything, .alpha = 3, .biases_and_norms = true};

template <class Scalar>
using Embed = attune::Linear<attune::LinearShape{kTokens, 3, kWidth}, Scalar>;
template <class Scalar>
using Positions = attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}, Scalar>;
constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, .d_ff = 7};
template <class Scalar>
using Encoder = attune::EncoderLayer<kEncoder, Scalar>;
template <class Scalar>
using Mean = attune::Pooling<attune::PoolingShape{kTokens, kWidth}, Scalar>;
template <class Scalar>
using Head = attune::Linear<attune::LinearShape{1, kWidth, 2}, Scalar>;
template <class Scalar>
using Model = Sequential<Embed<Scalar>, Positions<Scalar>, attune::Repeat<2, Encoder<Scalar>>, Mean<Scalar>,
                         Head<Scalar>>;

constexpr attune::AttentionShape kRotated{
    .seq_len = kTokens, .d_model = kWidth, .num_heads = 1, .rotary_dim = 4};
constexpr attune::FeedForwardShape kNetwork{.rows = kTokens, .d_model = kWidth, .d_ff = 8};
template <class Scalar>
using Llama =
    attune::EncoderLayerOf<attune::MultiHeadAttention<kRotated, Scalar>, attune::SwiGlu<kNetwork, Scalar>,
                           attune::RmsNorm<attune::NormShape{kTokens, kWidth}, Scalar>,
                           attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;

template <class Scalar>
using Decoder = check::StackedDecoder<attune::DecoderLayer<
    attune::DecoderLayerShape{
        .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, .d_ff = 7, .memory_len = 7},
    Scalar>>;

// Constants that are filled at run time.
template <class Layer>
struct Constants {
  static inline typename Layer::Parameters set;
};
template <class Layer>
void fill_constants(double largest = 1) {
  attune::Rng rng(1);
  check::fill_set(Constants<Layer>::set, rng, -largest, largest);
}
template <class Layer, LowRank low_rank>
using AdaptedLayer = Adapted<Layer, Constants<Layer>::set, low_rank>;

template <class Layer, LowRank low_rank>
void expect_derivatives(double largest = 1) {
  fill_constants<Layer>(largest);
  check::check_layer_gradients<AdaptedLayer<Layer, low_rank>>(-largest, largest);
}

template <class Layer>
constexpr int kScalars = static_cast<int>(sizeof(typename Layer::Parameters) /
                                          sizeof(typename Layer::Scalar));

}  // namespace

TEST(Adapted, gradients_are_derivatives_in_every_layer) {
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_derivatives<Embed<double>, kAll>();
  }
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_derivatives<Encoder<double>, kQueriesAndValues>();
  }
  expect_derivatives<Encoder<double>, kAllAndVectors>();
}

TEST(Adapted, gradients_are_derivatives_in_gated_and_rotated_layers) {
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_derivatives<Llama<double>, kAll>();
    expect_derivatives<Llama<double>, kAllAndVectors>();
  }
}

TEST(Adapted, gradients_are_derivatives_with_every_option_of_attention) {
  constexpr attune::AttentionShape kOptions =
      check::with_every_option({.seq_len = kTokens,
                                .d_model = 8,
                                .num_heads = 4,
                                .num_kv_heads = 2,
                                .d_k = 4,
                                .query_key_norm = attune::QueryKeyNorm::kLayerNorm},
                               {.left = 2, .right = 0, .sinks = 1});
  using Attention = attune::MultiHeadAttention<kOptions, double>;
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_derivatives<Attention, kAll>();
  }
  expect_derivatives<Attention, kAllAndVectors>();
}

TEST(Adapted, gradients_are_derivatives_in_decoders) {
  expect_derivatives<Decoder<double>, kAllAndVectors>();
}

#if !ATTUNE_TEST_QUICK
TEST(Adapted, gradients_are_derivatives_in_models) {
  using Attention = attune::MultiHeadAttention<attune::AttentionShape{kTokens, kWidth, 2}, double>;
  using Norm = attune::LayerNorm<attune::NormShape{kTokens, kWidth}, double>;
  using Layer = Sequential<Embed<double>, Positions<double>, attune::Repeat<2, attune::Residual<Attention>>,
                           Norm, Mean<double>, Head<double>>;
  if constexpr (check::kDepth >= check::kFullHost) expect_derivatives<Layer, kQueriesAndValues>(0.6);
  expect_derivatives<Layer, kAllAndVectors>(0.6);
}
#endif

TEST(Adapted, gradients_are_derivatives_with_dropout) {
  constexpr attune::EncoderLayerShape kDrops{
      .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2, .dropout = 0.3}, .d_ff = 7};
  if constexpr (check::kDepth >= check::kFullHost) {
    using Layer = attune::EncoderLayer<kDrops, double>;
    fill_constants<Layer>();
    check::check_layer_gradients<AdaptedLayer<Layer, kAll>>(-1, 1);
  }
}

TEST(Adapted, takes_the_roles_that_are_named) {
  const auto scalars = []<LowRank low_rank>() { return kScalars<AdaptedLayer<Encoder<float>, low_rank>>; };
  constexpr int kOfAttention = 2 * (kWidth + kWidth), kOfNetwork = 2 * (kWidth + 7);
  EXPECT_EQ(scalars.operator()<LowRank{.rank = 2}>(), 2 * kOfAttention);
  EXPECT_EQ((scalars.operator()<LowRank{.rank = 2, .roles = Role::kKeys}>()), kOfAttention);
  EXPECT_EQ((scalars.operator()<LowRank{.rank = 2, .roles = Role::kAttention}>()), 4 * kOfAttention);
  EXPECT_EQ((scalars.operator()<LowRank{.rank = 2, .roles = Role::kFeedForwardIn}>()), kOfNetwork);
  EXPECT_EQ((scalars.operator()<LowRank{.rank = 2, .roles = Role::kFeedForward}>()), 2 * kOfNetwork);
  EXPECT_EQ((scalars.operator()<LowRank{.rank = 2, .roles = Role::kEverything}>()),
            4 * kOfAttention + 2 * kOfNetwork);
  EXPECT_EQ((kScalars<AdaptedLayer<Llama<float>, LowRank{.rank = 1, .roles = Role::kFeedForwardIn}>>),
            2 * (kWidth + 8));
  // Tables have none; the layers around them do.
  EXPECT_EQ((kScalars<AdaptedLayer<Model<float>, LowRank{.rank = 1, .roles = Role::kProjections}>>),
            3 + kWidth + kWidth + 2);
}

TEST(Adapted, keeps_only_trained_parameters_in_ram) {
  using All = attune::Trainer<Model<float>, attune::CrossEntropy<>>;
  using Trained = AdaptedLayer<Model<float>, kQueriesAndValues>;
  using Trainer = attune::Trainer<Trained, attune::CrossEntropy<>>;
  constexpr int kTrained = 2 * 2 * 2 * (kWidth + kWidth);
  constexpr attune::MemoryReport all = All::memory(), adapted = Trainer::memory();
  static_assert(sizeof(Trained::Parameters) == kTrained * sizeof(float));
  static_assert(adapted.parameters == kTrained * sizeof(float) && adapted.gradients == adapted.parameters);
  static_assert(adapted.moments == all.moments - 2 * (all.parameters - adapted.parameters));
  static_assert(adapted.object() == sizeof(Trainer));
  // x·A of the tokens, and the contexts, which nothing is taped of.
  constexpr std::size_t kRoom = kTokens * 2 * sizeof(float), kContext = kTokens * kWidth * sizeof(float);
  static_assert(adapted.scratch <= all.scratch + kRoom + kContext);
  static_assert(adapted.tape < all.tape);
  static_assert(sizeof(Trained::InferenceScratch) == sizeof(Model<float>::InferenceScratch) + kRoom);
  EXPECT_EQ(attune::count_scalars(Trained::Parameters{}), kTrained);
}

TEST(Adapted, is_the_layer_of_the_constants_at_first) {
  using Layer = Model<float>;
  using Trained = AdaptedLayer<Layer, kAllAndVectors>;
  fill_constants<Layer>();
  static attune::Trainer<Trained, attune::CrossEntropy<>> trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{2});
  static Layer::InferenceScratch scratch;
  Layer::Input x;
  Layer::Output y, expected;
  attune::Rng rng(3);
  check::fill(x, rng);
  Layer::forward(Constants<Layer>::set, x, expected, scratch);
  EXPECT_EQ(trainer.predict(x, y), attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));

  // A normal distribution of variance 1/in; B = 0, so that the first step moves B alone.
  double squares = 0;
  int count = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto& tensor) {
        for (const float value : tensor.values) {
          if (std::strcmp(path.name, "lora_A") == 0) {
            squares += static_cast<double>(value * value) * tensor.rows;
            ++count;
          } else if (std::strcmp(path.name, "lora_B") == 0) {
            EXPECT_EQ(value, 0.0f);
          }
        }
      },
      trainer.parameters());
  EXPECT_NEAR(squares / count, 1.0, 0.3);
  const int target[] = {1};
  EXPECT_EQ(trainer.accumulate(x, target), attune::Status::kOk);
  attune::for_each_tensor(
      [](const attune::TensorPath& path, const auto& gradient) {
        SCOPED_TRACE(path.name);
        const float size = attune::kernels::sum_of_squares(gradient.size, gradient.data());
        EXPECT_EQ(size > 0, std::strcmp(path.name, "lora_A") != 0);
      },
      trainer.gradients());
}

TEST(Adapted, learns_next_to_a_fully_trained_head) {
  using Body = Sequential<Embed<float>, Positions<float>, attune::Repeat<2, Encoder<float>>, Mean<float>>;
  fill_constants<Body>();
  static const Body::Parameters before = Constants<Body>::set;
  static attune::Trainer<Sequential<AdaptedLayer<Body, kQueriesAndValues>, Head<float>>,
                         attune::CrossEntropy<>>
      trainer;
  trainer.initialize(attune::XavierUniform{}, attune::Rng{4});
  Body::Input x[4];
  attune::Rng rng(5);
  for (auto& sequence : x) check::fill(sequence, rng);
  const auto loss = [&](float learning_rate) {
    float total = 0;
    for (int i = 0; i < 4; ++i) {
      const int target[] = {i % 2};
      const auto result = trainer.step(x[i], target, {.learning_rate = learning_rate});
      EXPECT_TRUE(result.ok());
      total += result.loss;
    }
    return total;
  };
  const float first = loss(0.02f);
  for (int i = 0; i < 40; ++i) (void)loss(0.02f);
  EXPECT_LT(loss(0), 0.1f * first);
  EXPECT_TRUE(check::same_bits(before, Constants<Body>::set));
}

TEST(Adapted, merged_is_the_same_function) {
  using Layer = Model<double>;
  using Trained = AdaptedLayer<Layer, kAllAndVectors>;
  fill_constants<Layer>();
  static Trained::Parameters trained;
  static Layer::Parameters merged;
  attune::Rng rng(6);
  check::fill_set(trained, rng);
  Trained::merge(trained, merged);
  static Trained::InferenceScratch scratch;
  static Layer::InferenceScratch scratch_of_merged;
  Layer::Input x;
  Layer::Output y, expected, of_constants;
  check::fill(x, rng);
  Trained::forward(trained, x, expected, scratch);
  Layer::forward(merged, x, y, scratch_of_merged);
  Layer::forward(Constants<Layer>::set, x, of_constants, scratch_of_merged);
  EXPECT_LE(check::max_difference(y, expected), 1e-12);
  EXPECT_GT(check::max_difference(of_constants, expected), 1e-2);
  EXPECT_TRUE(
      check::same_bits(merged.layer<2>().layers[1].norm2.weight, trained.layer<2>().layers[1].norm2.weight));
  EXPECT_TRUE(check::same_bits(merged.layer<1>(), Constants<Layer>::set.layer<1>()));
  EXPECT_TRUE(check::same_bits(merged.layer<2>().layers[0].self_attention.key.bias,
                               Constants<Layer>::set.layer<2>().layers[0].self_attention.key.bias));
}

namespace {

using Small = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}>;
Small::ParametersOf<attune::TransposedTensor, attune::Tensor> transposed;

}  // namespace

TEST(Adapted, has_constants_of_any_form) {
  fill_constants<Small>();
  decltype(transposed)::visit(
      [](const attune::TensorPath&, auto& to, const auto& from) { attune::detail::copy_elements(from, to); },
      static_cast<const attune::TensorPath*>(nullptr), transposed, Constants<Small>::set);
  using Own = AdaptedLayer<Small, kAll>;
  using InPlace = Adapted<Small, transposed, kAll>;
  static attune::Trainer<Own> own;
  static attune::Trainer<InPlace> in_place;
  own.initialize(attune::XavierUniform{}, attune::Rng{7});
  in_place.initialize(attune::XavierUniform{}, attune::Rng{7});
  const check::Example<Small> data(8);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(own.step(data.x, data.target, {.learning_rate = 0.01f}).loss,
              in_place.step(data.x, data.target, {.learning_rate = 0.01f}).loss);
  }
  EXPECT_EQ(attune::hash_bits(own.parameters()), attune::hash_bits(in_place.parameters()));
}

TEST(Adapted, biases_of_keys_are_trained_where_they_have_a_gradient) {
  constexpr LowRank kVectors{.rank = 1, .roles = Role::kValues, .biases_and_norms = true};
  using Rotated = attune::MultiHeadAttention<kRotated>;
  using Plain = attune::MultiHeadAttention<attune::AttentionShape{kTokens, kWidth, 1}>;
  EXPECT_EQ((kScalars<AdaptedLayer<Rotated, kVectors>>), 2 * kWidth + 4 * kWidth);
  EXPECT_EQ((kScalars<AdaptedLayer<Plain, kVectors>>), 2 * kWidth + 3 * kWidth);
  static_assert(sizeof(attune::BiasesAndNorms<Plain, Constants<Plain>::set>::Parameters) ==
                3 * kWidth * sizeof(float));
  static_assert(sizeof(attune::BiasesAndNorms<Rotated, Constants<Rotated>::set>::Parameters) ==
                4 * kWidth * sizeof(float));
}

TEST(Adapted, of_other_factors_have_another_state) {
  using Trained = AdaptedLayer<Small, kQueriesAndValues>;
  using Other = attune::Trainer<AdaptedLayer<Small, LowRank{.rank = 2, .alpha = 7}>>;
  using Keys = attune::Trainer<AdaptedLayer<Small, LowRank{.rank = 2, .roles = Role::kKeys | Role::kValues}>>;
  static_assert(Other::State::kFingerprint != attune::Trainer<Trained>::State::kFingerprint);
  static_assert(Keys::State::kFingerprint != attune::Trainer<Trained>::State::kFingerprint);
}

TEST(Adapted, names_its_factors) {
  static AdaptedLayer<Small, kQueriesAndValues>::Parameters trained;
  const char* const names[][3] = {{"lora_A", "weight", "query"},
                                  {"lora_B", "weight", "query"},
                                  {"lora_A", "weight", "value"},
                                  {"lora_B", "weight", "value"}};
  int i = 0;
  attune::for_each_tensor(
      [&](const attune::TensorPath& path, const auto&) {
        ASSERT_TRUE(i < 4);
        EXPECT_STREQ(path.name, names[i][0]);
        EXPECT_STREQ(path.parent->name, names[i][1]);
        EXPECT_STREQ(path.parent->parent->name, names[i][2]);
        ++i;
      },
      trained);
  EXPECT_EQ(i, 4);
}

// A memory that is longer than the tokens, in layers that stand several times.
namespace {

using LongMemory = attune::Repeat<
    2, attune::DecoderLayer<attune::DecoderLayerShape{
           .attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 4, .memory_len = 9}>>;
constexpr LongMemory::Parameters kLongMemory{};
static_assert(sizeof(attune::Adapted<LongMemory, kLongMemory, LowRank{.rank = 1}>::Parameters) > 0);
static_assert(attune::detail::most_tokens<LongMemory>() == 9);

}  // namespace
