#include <attune/training/model_unit.hpp>

#include <cstring>

#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/model_unit_definition.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace of_model_unit {

struct Numbers {
  using Target = float;
  static constexpr int kInputs = 6, kTargets = 4, kOutputs = 4;
};
struct Ids {
  using Input = int;
  using Target = int;
  static constexpr int kInputs = 2, kTargets = 2, kOutputs = 4;
};

}  // namespace of_model_unit

namespace {

using of_model_unit::Ids, of_model_unit::Numbers;
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
using Words =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 2, .vocabulary = 5, .d_model = 3}>,
                       Layer>;
attune::Trainer<Layer> trainer;
attune::Trainer<Words, attune::CrossEntropy<>> trainer_of_words;

using Unit = attune::ModelUnit<Numbers>;
constexpr float kInputs[] = {1, 2, 3, 4, 5, 6}, kTargets[] = {1, 0, 0, 1};

}  // namespace

ATTUNE_MODEL_UNIT(Numbers, trainer, .weight_decay = 0.5f);
ATTUNE_MODEL_UNIT(Ids, trainer_of_words);

TEST(ModelUnit, trains_to_the_bits_of_its_trainer) {
  static attune::Trainer<Layer> by_hand;
  by_hand.initialize(attune::XavierUniform{}, attune::Rng{7});
  Unit::initialize(7);
  for (int step = 0; step < 3; ++step) {
    const auto result = Unit::step(kInputs, kTargets, 0.01f);
    const auto expected = by_hand.step(kInputs, kTargets, {.learning_rate = 0.01f, .weight_decay = 0.5f});
    EXPECT_EQ(result.status, attune::Status::kOk);
    EXPECT_EQ(result.loss, expected.loss);
  }
  EXPECT_TRUE(check::same_bits(trainer.parameters(), by_hand.parameters()));
  Unit::Outputs outputs;
  Layer::Output y;
  EXPECT_EQ(Unit::predict(kInputs, outputs), attune::Status::kOk);
  EXPECT_EQ(by_hand.predict(kInputs, y), attune::Status::kOk);
  EXPECT_TRUE(std::memcmp(outputs, y.values, sizeof outputs) == 0);
}

TEST(ModelUnit, resumes_from_its_state) {
  static std::remove_cvref_t<decltype(trainer.state())> stored;
  Unit::initialize(1);
  (void)Unit::step(kInputs, kTargets, 0.01f);
  const Unit::State state = Unit::state();
  EXPECT_EQ(state.size, sizeof stored);
  std::memcpy(static_cast<void*>(&stored), state.bytes, state.size);
  const float after = Unit::step(kInputs, kTargets, 0.01f).loss;
  Unit::initialize(2);
  EXPECT_EQ(Unit::resume({&stored, sizeof stored}), attune::Status::kOk);
  EXPECT_EQ(Unit::step(kInputs, kTargets, 0.01f).loss, after);
  EXPECT_EQ(Unit::resume({&stored, sizeof stored - 1}), attune::Status::kOtherState);
}

TEST(ModelUnit, of_token_ids_refuses_invalid_ids) {
  using WordUnit = attune::ModelUnit<Ids>;
  WordUnit::initialize(1);
  WordUnit::Outputs outputs;
  EXPECT_EQ(WordUnit::step({1, 4}, {0, 1}, 0.01f).status, attune::Status::kOk);
  EXPECT_EQ(WordUnit::predict({1, 5}, outputs), attune::Status::kInvalidToken);
}
