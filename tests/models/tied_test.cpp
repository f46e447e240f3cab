// Language models whose head is their embedding; a Llama is one of them.
#include <attune/models/tied.hpp>

#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/update_in_backward.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Status;

constexpr int kTokens = 6, kVocabulary = 7, kWidth = 8;
constexpr attune::NormShape kNorm{.rows = kTokens, .d_model = kWidth};
constexpr attune::AttentionShape kAttention{.seq_len = kTokens,
                                            .d_model = kWidth,
                                            .num_heads = 4,
                                            .num_kv_heads = 2,
                                            .bias = false,
                                            .rotary_dim = 2,
                                            .window = {.right = 0}};
constexpr attune::FeedForwardShape kNetwork{.rows = kTokens, .d_model = kWidth, .d_ff = 12, .bias = false};
template <class Scalar>
using Embed = attune::Embedding<
    attune::EmbeddingShape{.seq_len = kTokens, .vocabulary = kVocabulary, .d_model = kWidth}, Scalar>;

template <class Scalar>
using Block = attune::EncoderLayerOf<attune::MultiHeadAttention<kAttention, Scalar>,
                                     attune::SwiGlu<kNetwork, Scalar>, attune::RmsNorm<kNorm, Scalar>,
                                     attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
template <class Scalar>
using Body = attune::Sequential<attune::Repeat<2, Block<Scalar>>, attune::RmsNorm<kNorm, Scalar>>;
template <class Scalar>
using Llama = attune::Tied<Embed<Scalar>, Body<Scalar>>;

constexpr Llama<float>::Input kIds{3, 0, 6, 3, 2, 5};

// Everything that is computed of one sequence.
template <class Model>
struct Pass {
  typename Model::Parameters parameters, gradients;
  typename Model::Output y, inferred, dy;
  typename Model::Tape tape;
  typename Model::Scratch scratch;
  typename Model::InferenceScratch inference;

  void run() {
    EXPECT_EQ(Model::forward(parameters, kIds, y, tape, scratch), Status::kOk);
    Model::backward(parameters, kIds, tape, dy, attune::NoGradient{}, gradients, scratch);
  }
};

// One of each scalar, whatever tests it is used in: boards have little RAM.
template <class Scalar>
Pass<Llama<Scalar>>& cleared_pass() {
  static Pass<Llama<Scalar>> one;
  one = {};
  return one;
}

static_assert(attune::IsLayer<Llama<float>>);
static_assert(std::is_same_v<Llama<float>::WithScalar<double>, Llama<double>>);

}  // namespace

TEST(Tied, the_gradient_of_the_table_is_that_of_both_uses) {
  auto& a = cleared_pass<double>();
  attune::Rng rng(4);
  check::fill_set(a.parameters, rng);
  check::fill(a.dy, rng);
  const auto loss = [&] {
    EXPECT_EQ(Llama<double>::forward(a.parameters, kIds, a.inferred, a.inference), Status::kOk);
    return check::dot(a.inferred, a.dy);
  };
  a.run();
  EXPECT_GT(check::expect_set_gradients(loss, a.parameters, a.gradients), 0.1);
  static Llama<double>::Parameters once;
  once = a.gradients;
  a.run();
  attune::for_each_tensor(  // the table is added to twice, so not to the bit
      [](const attune::TensorPath&, const auto& one, const auto& two) {
        for (int i = 0; i < one.size; ++i) EXPECT_NEAR(two.values[i], 2 * one.values[i], 1e-12);
      },
      once, a.gradients);
}

// As nanoGPT's logits when it writes a text: those of the last token alone.
template <class Scalar>
using LastToken = attune::Tied<
    Embed<Scalar>,
    attune::Sequential<
        attune::Repeat<2, Block<Scalar>>, attune::RmsNorm<kNorm, Scalar>,
        attune::Pooling<attune::PoolingShape{kTokens, kWidth, attune::PoolingKind::kLast}, Scalar>>>;

TEST(Tied, a_body_that_ends_with_the_last_token_predicts_once) {
  using Model = LastToken<double>;
  static_assert(Model::Output::rows == 1 && Model::Output::cols == kVocabulary);
  auto& a = cleared_pass<double>();
  static Pass<Model> b;
  attune::Rng rng(10);
  check::fill_set(a.parameters, rng);
  attune::copy_parameters(a.parameters.embedding, b.parameters.embedding);
  attune::copy_parameters(a.parameters.body.layer<0>(), b.parameters.body.layer<0>());
  attune::copy_parameters(a.parameters.body.layer<1>(), b.parameters.body.layer<1>());
  check::fill(b.dy, rng);
  for (int word = 0; word < kVocabulary; ++word) a.dy(kTokens - 1, word) = b.dy(0, word);
  const auto loss = [&] {
    EXPECT_EQ(Model::forward(b.parameters, kIds, b.inferred, b.inference), Status::kOk);
    return check::dot(b.inferred, b.dy);
  };
  b.run();
  EXPECT_GT(check::expect_set_gradients(loss, b.parameters, b.gradients), 0.1);
  a.run();
  for (int word = 0; word < kVocabulary; ++word) {
    EXPECT_NEAR(b.y(0, word), a.y(kTokens - 1, word), 1e-12);
    EXPECT_NEAR(b.gradients.embedding.weight(word, 0), a.gradients.embedding.weight(word, 0), 1e-12);
  }
}

TEST(Tied, the_last_token_alone_has_the_same_bits_under_every_plan) {
  using Model = LastToken<float>;
  using Loss = attune::CrossEntropy<>;
  static attune::Trainer<Model, Loss, attune::Sgd<>> plain;
  static attune::Trainer<Model, Loss, attune::Sgd<>, 1, attune::UpdateInBackward> in_backward;
  static attune::Trainer<Model, Loss, attune::Sgd<>, 1, attune::Lockstep> in_lanes;
  const auto train = [](auto& trainer) {
    trainer.initialize(attune::Normal{.standard_deviation = 0.2f}, attune::Rng{5});
    attune::KeyPaddingMask<kTokens> mask;
    for (int step = 0; step < 3; ++step) {
      EXPECT_EQ(mask.set_length(kTokens - step), Status::kOk);
      EXPECT_TRUE(trainer.step(kIds, step, {.learning_rate = 0.1f}, attune::NoClipping{}, mask).ok());
    }
  };
  train(plain);
  train(in_backward);
  train(in_lanes);
  check::expect_same_set(plain.parameters(), in_backward.parameters());
  check::expect_same_set(plain.parameters(), in_lanes.parameters());
}

TEST(Tied, refuses_ids_outside_the_vocabulary_and_writes_nothing) {
  auto& a = cleared_pass<float>();
  a.y(0, 0) = 42;
  Llama<float>::Input ids = kIds;
  ids[4] = kVocabulary;
  EXPECT_EQ(Llama<float>::forward(a.parameters, ids, a.y, a.tape, a.scratch), Status::kInvalidToken);
  EXPECT_EQ(Llama<float>::forward(a.parameters, ids, a.y, a.inference), Status::kInvalidToken);
  EXPECT_EQ(a.y(0, 0), 42.0f);
}

// Tokens count up, by a step that each sequence shows twice.
TEST(Tied, a_llama_learns_to_count) {
  static attune::Trainer<Llama<float>, attune::CrossEntropy<>> trainer;
  trainer.initialize(attune::Normal{.standard_deviation = 0.2f}, attune::Rng{5});
  attune::Rng rng(6);
  float first = 0, last = 0;
  for (int step = 0; step < 400; ++step) {
    Llama<float>::Input ids;
    std::array<int, kTokens> next;
    int at = static_cast<int>(rng.next() % kVocabulary);
    const int by = 1 + static_cast<int>(rng.next() % 2);
    for (std::size_t i = 0; i < kTokens; ++i) {
      ids[i] = at;
      at = (at + by) % kVocabulary;
      next[i] = at;
    }
    const auto result = trainer.step(ids, next, {.learning_rate = 0.01f});
    ASSERT_EQ(result.status, Status::kOk);
    (step < 40 ? first : last) += step < 40 || step >= 360 ? result.loss / 40 : 0;
  }
  EXPECT_GT(first, 1.0f);
  EXPECT_LT(last, 0.25f);  // the first token's next one is a guess: ln 2 of one token in six
}

TEST(Tied, a_table_that_is_constant_takes_no_memory_and_hands_the_gradient_on) {
  using Gradients = Llama<float>::ParametersOf<attune::Untrained, attune::Tensor>;
  static_assert(sizeof(Llama<float>::TapeOf<Gradients>) < sizeof(Llama<float>::Tape));
  auto& a = cleared_pass<float>();
  static Gradients gradients;
  static Llama<float>::TapeOf<Gradients> tape;
  static Llama<float>::ScratchOf<Gradients> scratch;
  attune::set_zero(gradients);
  attune::Rng rng(7);
  check::fill_set(a.parameters, rng);
  check::fill(a.dy, rng);
  a.run();
  EXPECT_EQ(Llama<float>::forward(a.parameters, kIds, a.inferred, tape, scratch), Status::kOk);
  Llama<float>::backward(a.parameters, kIds, tape, a.dy, attune::NoGradient{}, gradients, scratch);
  EXPECT_TRUE(check::same_bits(a.y, a.inferred));
  EXPECT_TRUE(check::same_bits(gradients.body.layer<1>().weight, a.gradients.body.layer<1>().weight));
  EXPECT_TRUE(check::same_bits(gradients.body.layer<0>().layers[0].norm1.weight,
                               a.gradients.body.layer<0>().layers[0].norm1.weight));
}

TEST(Tied, tables_of_eight_bits_are_read_as_they_are_on_both_ends) {
  auto& a = cleared_pass<float>();
  static Llama<float>::ParametersOf<attune::Int8Weights, attune::Tensor> narrow;
  attune::Rng rng(8);
  check::fill_set(a.parameters, rng);
  EXPECT_EQ(attune::quantize(a.parameters, narrow), Status::kOk);
  attune::copy_parameters(narrow, a.parameters);
  EXPECT_EQ(Llama<float>::forward(a.parameters, kIds, a.y, a.inference), Status::kOk);
  EXPECT_EQ(Llama<float>::forward(narrow, kIds, a.inferred, a.inference), Status::kOk);
  EXPECT_LT(check::max_difference(a.y, a.inferred), 1e-4);
}
