// Models whose first layer is an Embedding: their input are token ids.
#include <attune/layers/embedding.hpp>

#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Sequential;
using attune::Status;

constexpr int kSeqLen = 8, kVocabulary = 6, kPadding = 5, kBatch = 5;

template <class Scalar>
using Embed =
    attune::Embedding<attune::EmbeddingShape{
                          .seq_len = kSeqLen, .vocabulary = kVocabulary, .d_model = 4, .padding = kPadding},
                      Scalar>;
template <class Scalar>
using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = kSeqLen, .d_model = 4}, Scalar>;
template <class Scalar>
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
                                         .attention = {.seq_len = kSeqLen, .d_model = 4, .num_heads = 2},
                                         .d_ff = 6,
                                         .activation = attune::Activation::kGelu,
                                         .norm = attune::NormPlacement::kBefore},
                                     Scalar>;
template <class Scalar>
using Mean = attune::Pooling<attune::PoolingShape{.seq_len = kSeqLen, .d_model = 4}, Scalar>;
template <class Scalar>
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}, Scalar>;

template <class Scalar>
using Model = Sequential<Embed<Scalar>, Positions<Scalar>, attune::Repeat<2, Encoder<Scalar>>, Mean<Scalar>,
                         Head<Scalar>>;
template <class Scalar>
using Rest = Sequential<Positions<Scalar>, attune::Repeat<2, Encoder<Scalar>>, Mean<Scalar>, Head<Scalar>>;

using M = Model<float>;
using Trainer = attune::Trainer<M, attune::CrossEntropy<>, attune::AdamW, kBatch>;

static_assert(std::is_same_v<M::WithScalar<double>, Model<double>>);
static_assert(std::is_same_v<M::Input, std::array<int, kSeqLen>>);
static_assert(Trainer::memory().object() == sizeof(Trainer));
static_assert(Trainer::memory().inputs == kBatch * (kSeqLen + 1) * sizeof(int));
static_assert(Trainer::memory(attune::Feeding::kOneByOne).inputs == (kSeqLen + 1) * sizeof(int));
static_assert(attune::inference_memory<M>().inputs == kSeqLen * sizeof(int) + 2 * sizeof(float));
static_assert(sizeof(Trainer::BatchInput) == kBatch * kSeqLen * sizeof(int));

// Tokens 0 and 1 once each among others; the class is 0 where 0 comes first.
int draw_sequence(attune::Rng& rng, int* ids) {
  const auto below = [&rng](int bound) {
    return static_cast<int>(rng.next() % static_cast<unsigned>(bound));
  };
  for (int i = 0; i < kSeqLen; ++i) ids[i] = 2 + below(3);
  const int first = below(kSeqLen - 1), second = first + 1 + below(kSeqLen - 1 - first);
  const int target = below(2);
  ids[first] = target;
  ids[second] = 1 - target;
  return target;
}

struct Batch {
  Trainer::BatchInput ids;
  Trainer::BatchTarget targets;
  explicit Batch(attune::Rng& rng) {
    for (std::size_t b = 0; b < kBatch; ++b) targets[b] = draw_sequence(rng, ids.data() + b * kSeqLen);
  }
  [[nodiscard]] Trainer::InputView sequence(std::size_t b) const {
    return Trainer::InputView(ids.data() + b * kSeqLen);
  }
};

Trainer first_trainer, second_trainer;

}  // namespace

TEST(TokenModel, gradients_are_derivatives) {
  using Double = Model<double>;
  static Double::Parameters parameters, gradients;
  static Double::Tape tape;
  static Double::Scratch scratch;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  attune::set_zero(gradients);
  const Double::Input ids{3, 0, 1, 3, 2, 1, 4, 0};
  Double::Output y, dy;
  check::fill(dy, rng);
  const auto loss = [&] {
    EXPECT_EQ(Double::forward(parameters, ids, y, tape, scratch), Status::kOk);
    return check::dot(y, dy);
  };
  (void)loss();
  Double::backward(parameters, ids, tape, dy, attune::NoGradient{}, gradients, scratch);
  EXPECT_GT(check::expect_set_gradients(loss, parameters, gradients), 0.1);
}

TEST(TokenModel, predicts_from_ids) {
  Trainer& trainer = first_trainer;
  trainer.initialize(attune::LinearDefault{}, attune::Rng{1});
  static M::InferenceScratch scratch;
  M::Output predicted, inferred;
  const M::Input ids{0, 1, 2, 3, 4, 5, 0, 1};
  EXPECT_EQ(trainer.predict(ids, predicted, attune::CausalMask{}), Status::kOk);
  EXPECT_EQ(attune::infer<M>(trainer.parameters(), ids, inferred, scratch, attune::CausalMask{}),
            Status::kOk);
  EXPECT_TRUE(check::same_bits(predicted, inferred));
}

TEST(TokenModel, refuses_ids_outside_the_vocabulary) {
  Trainer &disturbed = first_trainer, &calm = second_trainer;
  disturbed.initialize(attune::LinearDefault{}, attune::Rng{1});
  calm.initialize(attune::LinearDefault{}, attune::Rng{1});
  attune::Rng rng(4);
  const Batch good(rng);
  EXPECT_TRUE(disturbed.step(good.ids, good.targets, {}).ok());
  EXPECT_TRUE(calm.step(good.ids, good.targets, {}).ok());
  const std::uint32_t before = attune::hash_bits(disturbed.parameters());
  M::Output y{{7, 8}};
  static M::InferenceScratch scratch;
  for (const int bad : {-1, kVocabulary, 1 << 30, -(1 << 30)}) {
    for (const std::size_t where : {std::size_t{0}, good.ids.size() - 1}) {
      Batch wrong = good;
      wrong.ids[where] = bad;
      const std::size_t b = where / kSeqLen;
      EXPECT_EQ(disturbed.step(wrong.ids, wrong.targets, {}).status, Status::kInvalidToken);
      EXPECT_EQ(disturbed.accumulate(wrong.sequence(b), {{0}}), Status::kInvalidToken);
      EXPECT_EQ(disturbed.predict(wrong.sequence(b), y), Status::kInvalidToken);
      EXPECT_EQ(M::forward(disturbed.parameters(), wrong.sequence(b), y, scratch), Status::kInvalidToken);
      EXPECT_TRUE(y.values[0] == 7 && y.values[1] == 8);
      EXPECT_EQ(attune::hash_bits(disturbed.parameters()), before);
      EXPECT_EQ(disturbed.update({}).status, Status::kIncompleteBatch);
    }
  }
  for (int step = 0; step < 2; ++step) {
    EXPECT_TRUE(disturbed.step(good.ids, good.targets, {}).ok());
    EXPECT_TRUE(calm.step(good.ids, good.targets, {}).ok());
  }
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}

TEST(TokenModel, a_padding_row_stays_zero) {
  Trainer& trainer = first_trainer;
  trainer.initialize(attune::Normal{}, attune::Rng{1});
  attune::Rng rng(5);
  for (int step = 0; step < 3; ++step) {
    Batch batch(rng);
    for (std::size_t b = 0; b < kBatch; ++b) {
      const int length = 3 + static_cast<int>(b);
      attune::KeyPaddingMask<kSeqLen> mask;
      EXPECT_EQ(mask.set_length(length), Status::kOk);
      for (int i = length; i < kSeqLen; ++i) batch.ids[b * kSeqLen + static_cast<std::size_t>(i)] = kPadding;
      EXPECT_EQ(trainer.accumulate(batch.sequence(b), {{batch.targets[b]}}, mask), Status::kOk);
    }
    EXPECT_TRUE(trainer.update({.learning_rate = 0.01f}).ok());
  }
  const auto& table = trainer.parameters().layer<0>().weight;
  for (int j = 0; j < 4; ++j) EXPECT_EQ(table(kPadding, j), 0.0f);
}

namespace {

constexpr Embed<float>::Parameters kTable{
    .weight = {{0, 1, 2, 3, 3, 2, 1, 0, 1, -1, 1, -1, 2, 2, -2, -2, 0, 1, 0, -1, 0, 0, 0, 0}}};

}  // namespace

TEST(TokenModel, trains_after_a_frozen_embedding) {
  using HeadOnly = Sequential<attune::Frozen<Embed<float>, kTable>, Rest<float>>;
  using HeadTrainer = attune::Trainer<HeadOnly, attune::CrossEntropy<>>;
  static HeadTrainer trainer;
  static_assert(HeadTrainer::memory().parameters == sizeof(Rest<float>::Parameters));
  trainer.initialize(attune::LinearDefault{}, attune::Rng{1});
  const HeadOnly::Input ids{0, 1, 2, 3, 4, 5, 0, 1};
  const float first = trainer.step(ids, {{1}}, {.learning_rate = 0.01f}).loss;
  EXPECT_LT(trainer.step(ids, {{1}}, {.learning_rate = 0.01f}).loss, first);
  EXPECT_EQ(trainer.step({{0, 1, 2, 3, 4, 5, 0, 6}}, {{1}}, {}).status, Status::kInvalidToken);
}

namespace {

Model<float>::Parameters whole;

}  // namespace

TEST(TokenModel, trains_low_rank_factors_after_a_constant_embedding) {
  using Tuned = attune::Adapted<Model<float>, whole, attune::LowRank{.rank = 2}>;
  attune::Rng rng(1);
  attune::initialize(whole, attune::LinearDefault{}, rng);
  static attune::Trainer<Tuned, attune::CrossEntropy<>> trainer;
  trainer.initialize(attune::LinearDefault{}, rng);
  const Tuned::Input ids{0, 1, 2, 3, 4, 5, 0, 1};
  const float first = trainer.step(ids, {{1}}, {.learning_rate = 0.1f}).loss;
  for (int i = 0; i < 10; ++i) (void)trainer.step(ids, {{1}}, {.learning_rate = 0.1f});
  EXPECT_LT(trainer.step(ids, {{1}}, {.learning_rate = 0.1f}).loss, first);
  EXPECT_EQ(trainer.step({{0, 1, 2, 3, 4, 5, 0, 6}}, {{1}}, {}).status, Status::kInvalidToken);
  Tuned::Output y;
  EXPECT_EQ(trainer.predict({{0, 1, 2, 3, 4, 5, 0, 6}}, y), Status::kInvalidToken);
}

TEST(TokenModel, learns_which_of_two_tokens_comes_first) {
  Trainer& trainer = first_trainer;
  trainer.initialize(attune::LinearDefault{}, attune::Rng{6});
  attune::Rng rng(7);
  constexpr int kSteps = 1500;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch(rng);
    const float rate = 0.02f * static_cast<float>(kSteps - step) / kSteps;
    EXPECT_TRUE(trainer.step(batch.ids, batch.targets, {.learning_rate = rate}).ok());
  }
  int right = 0;
  constexpr int kUnseen = 200;
  for (int i = 0; i < kUnseen; ++i) {
    M::Input ids;
    M::Output logits;
    const int target = draw_sequence(rng, ids.data());
    EXPECT_EQ(trainer.predict(ids, logits), Status::kOk);
    right += (logits(0, 1) > logits(0, 0)) == (target == 1);
  }
  EXPECT_GE(right, 190);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), check::by_policy(0xD490282Au, 0xE3D680ECu));
}
