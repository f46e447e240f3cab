// Calls between the slices of a step, and what a slice refuses.
#include <cmath>

#include <attune/training/training_in_slices.hpp>

#include <attune/attention/mask.hpp>
#include <attune/execution/inference_in_slices.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/persistence/flash_store.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "exchange/nor_flash.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 7;

template <class M>
struct Two : Trainer<M, MeanSquaredError, AdamW, 2> {
  using Model = M;
};

TEST(InSlices, of_little_work_are_many) {
  using Layer = MultiHeadAttention<AttentionShape{.seq_len = kTokens, .d_model = 6, .num_heads = 3}>;
  static Trainer<Layer> trainer;
  trainer.initialize(XavierUniform{}, Rng{3});
  const auto count = [](auto pass) {
    int slices = 1;
    while (pass.advance()) ++slices;
    EXPECT_EQ(pass.result().status, Status::kOk);
    trainer.discard();
    return slices;
  };
  const Layer::Input x{};
  const Layer::Output target{};
  const int few = count(trainer.accumulate_in_slices(x, target));
  EXPECT_GT(count(trainer.accumulate_in_slices<1>(x, target)), few);
  EXPECT_GT(few, 10);
}

// ---- Sequences of calls that are not finished, or not in order. ----

using Small = Two<Sequential<Linear<LinearShape{2, 3, 3}>, Dropout<DropoutShape{2, 3, 0.5}>>>;

struct Sessions {
  Small reference, trainer;
  Small::Model::Input x;
  Small::Model::Output target;

  void begin() {
    Rng rng(2);
    check::fill(x, rng);
    check::fill(target, rng);
    reference.initialize(XavierUniform{}, Rng{1});
    trainer.initialize(XavierUniform{}, Rng{1});
  }
  void finish_batch_alike() {
    for (Small* each : {&reference, &trainer}) {
      while (each->accumulate(x, target).status == Status::kOk) {
      }
      EXPECT_TRUE(each->update({}).ok());
    }
    EXPECT_TRUE(hash_bits(trainer.state()) == hash_bits(reference.state()));
    EXPECT_TRUE(check::same_bits(trainer.parameters(), reference.parameters()));
  }
  static void advance(auto& pass, int slices) {
    for (int i = 0; i < slices; ++i) EXPECT_TRUE(pass.advance());
  }
};

TEST(InSlices, calls_that_need_its_memory_are_refused) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  auto pass = trainer.accumulate_in_slices(x, target);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(trainer.accumulate(x, target).status, Status::kUnderWay);
    EXPECT_EQ(trainer.update({}).status, Status::kUnderWay);
    EXPECT_EQ(trainer.update_incomplete({}).status, Status::kUnderWay);
    Small::BatchInput inputs{};
    Small::BatchTarget targets{};
    EXPECT_EQ(trainer.step(inputs, targets, {}).status, Status::kUnderWay);
    auto other = trainer.accumulate_in_slices(x, target);
    EXPECT_FALSE(other.advance());
    EXPECT_EQ(other.result().status, Status::kUnderWay);
    auto update = trainer.update_in_slices({});
    EXPECT_FALSE(update.advance());
    EXPECT_EQ(update.result().status, Status::kUnderWay);
    Small::Model::Output y{};
    EXPECT_EQ(trainer.predict(x, y), Status::kUnderWay);
    auto prediction = trainer.predict_in_slices(x, y);
    EXPECT_FALSE(prediction.advance());
    EXPECT_EQ(prediction.status(), Status::kUnderWay);
    EXPECT_EQ(y(1, 2), 0);  // nothing is written
    EXPECT_TRUE(hash_bits(trainer.state()) ==
                hash_bits(reference.state()));  // may be saved: the last whole step
    EXPECT_TRUE(pass.advance());
  }
  while (pass.advance()) {
  }
  EXPECT_FALSE(pass.advance());  // nor does it begin once more
  EXPECT_EQ(pass.result().status, Status::kOk);
  EXPECT_EQ(reference.accumulate(x, target).status, Status::kOk);
  s.finish_batch_alike();
}

TEST(InSlices, a_prediction_needs_the_memory_of_training) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  Small::Model::Output y{}, expected{};
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
  EXPECT_EQ(reference.accumulate(x, target).status, Status::kOk);
  EXPECT_EQ(reference.predict(x, expected), Status::kOk);
  auto prediction = trainer.predict_in_slices<64>(x, y);
  EXPECT_EQ(prediction.status(), Status::kUnderWay);
  while (!prediction.done()) {
    EXPECT_EQ(trainer.accumulate(x, target).status, Status::kUnderWay);
    EXPECT_EQ(trainer.predict(x, y), Status::kUnderWay);
    EXPECT_TRUE(prediction.advance());
  }
  EXPECT_FALSE(prediction.advance());
  EXPECT_EQ(prediction.status(), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));
  s.finish_batch_alike();  // of two sequences: the prediction has left the first one alone
}

TEST(InSlices, a_prediction_ends_with_the_errors_of_predict) {
  static Sessions s;
  static Small never_started;
  Small::Model::Output y{};
  auto early = never_started.predict_in_slices(s.x, y);
  EXPECT_FALSE(early.advance());
  EXPECT_EQ(early.status(), Status::kNotInitialized);
  s.begin();
  auto& [reference, trainer, x, target] = s;
  Small::Model::Input bad = x;
  bad(1, 1) = std::numeric_limits<float>::quiet_NaN();
  auto prediction = trainer.predict_in_slices(bad, y);
  while (prediction.advance()) {
  }
  EXPECT_EQ(prediction.status(), Status::kNotFinite);
  for (int slices = 0; slices < 2; ++slices) {
    auto left = trainer.predict_in_slices<1>(x, y);
    s.advance(left, slices);
    trainer.discard();
    EXPECT_TRUE(left.done());
    EXPECT_FALSE(left.advance());
    EXPECT_EQ(left.status(), Status::kUnderWay);
  }
  s.finish_batch_alike();
}

TEST(InSlices, discard_ends_a_sequence_at_any_piece) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  for (int slices = 0; slices < 6; ++slices) {
    auto pass = trainer.accumulate_in_slices(x, target);
    s.advance(pass, slices);
    trainer.discard();
    EXPECT_FALSE(pass.advance());
    EXPECT_TRUE(pass.done());
    EXPECT_EQ(pass.result().status, Status::kUnderWay);
    EXPECT_EQ(trainer.update_incomplete({}).status, Status::kIncompleteBatch);
    auto next = trainer.accumulate_in_slices(x, target);
    EXPECT_FALSE(pass.advance());  // not on behalf of the next one
    trainer.discard();
    EXPECT_TRUE(next.done());
    s.finish_batch_alike();
  }
}

TEST(InSlices, resume_and_initialize_end_a_pass) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  const auto state = trainer.state();
  auto pass = trainer.accumulate_in_slices(x, target);
  s.advance(pass, 4);
  EXPECT_EQ(trainer.resume(state), Status::kOk);
  EXPECT_TRUE(pass.done());
  s.finish_batch_alike();
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
  auto update = trainer.update_incomplete_in_slices({});
  s.advance(update, 2);
  trainer.initialize(XavierUniform{}, Rng{1});
  reference.initialize(XavierUniform{}, Rng{1});
  EXPECT_TRUE(update.done());
  EXPECT_EQ(update.result().status, Status::kUnderWay);
  s.finish_batch_alike();
}

TEST(InSlices, of_an_update_all_are_bounded) {
  using Model = Linear<LinearShape{1, 30, 41}>;
  constexpr int kParameters = 30 * 41 + 41, kWork = 100;
  static Trainer<Model> trainer;
  const auto slices_of = [&](const auto& clipping) {
    trainer.initialize(XavierUniform{}, Rng{1});
    Model::Input x{};
    Model::Output target{};
    EXPECT_TRUE(trainer.accumulate(x, target).ok());
    auto update = trainer.update_in_slices<kWork>({}, clipping);
    int slices = 0;
    while (update.advance()) ++slices;
    EXPECT_TRUE(update.result().ok());
    return slices;
  };
  constexpr int kOfNorm = 4, kOfUpdate = 16;  // the work of an element
  EXPECT_GE(slices_of(NoClipping{}), kParameters * (kOfNorm + kOfUpdate) / kWork);
  EXPECT_GE(slices_of(GradientClipping{.max_norm = 1}), kParameters * (2 * kOfNorm + kOfUpdate) / kWork);
}

// Until then, the norm of the gradients has changed nothing.
TEST(InSlices, discard_ends_an_update_that_has_not_changed_parameters) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  for (int slices = 1; slices < 4; ++slices) {
    EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
    auto update = trainer.update_incomplete_in_slices<1>({}, GradientClipping{.max_norm = 1});
    s.advance(update, slices);
    EXPECT_EQ(trainer.state().check(), Status::kOk);
    trainer.discard();
    EXPECT_FALSE(update.advance());
    EXPECT_EQ(update.result().status, Status::kUnderWay);
    s.finish_batch_alike();
  }
}

TEST(InSlices, a_started_update_continues) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
  EXPECT_EQ(reference.accumulate(x, target).status, Status::kOk);
  auto update = trainer.update_incomplete_in_slices<1>({});
  while (update.advance()) {
    if (!update.done() && trainer.state().check() == Status::kUnderWay) trainer.discard();
  }
  EXPECT_TRUE(update.result().ok());
  EXPECT_TRUE(reference.update_incomplete({}).ok());
  EXPECT_TRUE(check::same_bits(trainer.parameters(), reference.parameters()));
  s.finish_batch_alike();
}

TEST(InSlices, part_of_an_update_is_neither_saved_nor_resumed) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  using Flash = NorFlash<NorShape{.unit = 4, .pages = 16}>;
  static Flash flash;
  FlashStore<Flash, Small::State> store(flash);
  static Small::State loaded;
  EXPECT_EQ(store.save(loaded), Status::kOtherState);  // nobody's
  EXPECT_EQ(store.save(trainer.state()), Status::kOk);
  const auto under_way = []() -> const Small::State& {
    EXPECT_EQ(s.trainer.accumulate(s.x, s.target).status, Status::kOk);
    auto update = s.trainer.update_incomplete_in_slices<1>({});
    while (s.trainer.state().check() == Status::kOk) update.advance();
    Sessions::advance(update, 1);
    return s.trainer.state();
  };
  const Small::State part = under_way();
  EXPECT_EQ(store.save(part), Status::kUnderWay);
  EXPECT_EQ(reference.resume(part), Status::kUnderWay);
  EXPECT_EQ(trainer.resume([&](Small::State& state) { return store.load(state); }), Status::kOk);
  EXPECT_TRUE(hash_bits(trainer.state()) == hash_bits(reference.state()));
  s.finish_batch_alike();
  EXPECT_EQ(store.save(trainer.state()), Status::kOk);  // behind a whole one

  EXPECT_EQ(under_way().check(), Status::kUnderWay);
  EXPECT_EQ(trainer.resume([](Small::State&) { return Status::kNothingStored; }), Status::kNothingStored);
  EXPECT_EQ(trainer.state().check(), Status::kUnderWay);  // a part of an update is in it
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kNotInitialized);
  EXPECT_EQ(trainer.resume(reference.state()), Status::kOk);
  EXPECT_TRUE(trainer.accumulate(x, target).ok());
}

TEST(InSlices, refused_sequences_and_options_change_nothing) {
  static Sessions s;
  s.begin();
  auto& [reference, trainer, x, target] = s;
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
  Small::Model::Input bad = x;
  bad(1, 1) = std::numeric_limits<float>::quiet_NaN();
  auto pass = trainer.accumulate_in_slices(bad, target);
  while (pass.advance()) {
  }
  EXPECT_EQ(pass.result().status, Status::kNotFinite);
  EXPECT_TRUE(std::isnan(pass.result().loss));
  auto update = trainer.update_incomplete_in_slices({.learning_rate = -1.0f});
  while (update.advance()) {
  }
  EXPECT_EQ(update.result().status, Status::kInvalidLearningRate);
  auto unclipped = trainer.update_incomplete_in_slices({}, GradientClipping{.max_norm = 0});
  EXPECT_TRUE(unclipped.advance());
  EXPECT_FALSE(unclipped.advance());
  EXPECT_EQ(unclipped.result().status, Status::kInvalidMaxNorm);
  auto incomplete = trainer.update_in_slices({});
  EXPECT_FALSE(incomplete.advance());
  EXPECT_EQ(incomplete.result().status, Status::kIncompleteBatch);
  EXPECT_EQ(trainer.accumulate(x, target).status, Status::kOk);
  auto full = trainer.accumulate_in_slices(x, target);
  EXPECT_FALSE(full.advance());
  EXPECT_EQ(full.result().status, Status::kFullBatch);
  EXPECT_EQ(reference.accumulate(x, target).status, Status::kOk);
  s.finish_batch_alike();
  auto none = trainer.update_in_slices({});
  EXPECT_FALSE(none.advance());
  EXPECT_EQ(none.result().status, Status::kIncompleteBatch);
}

TEST(InSlices, tokens_outside_the_vocabulary_are_refused) {
  using Model = Sequential<Embedding<EmbeddingShape{2, 4, 3}>, Linear<LinearShape{2, 3, 3}>>;
  static Trainer<Model> trainer;
  trainer.initialize(XavierUniform{}, Rng{1});
  const Model::Input ids{1, 4};
  Model::Output target{}, y{};
  auto pass = trainer.accumulate_in_slices(ids, target);
  while (pass.advance()) {
  }
  EXPECT_EQ(pass.result().status, Status::kInvalidToken);
  Model::InferenceScratch scratch;
  auto prediction = infer_in_slices<Model>(trainer.parameters(), ids, y, scratch);
  EXPECT_EQ(prediction.status(), Status::kUnderWay);
  while (prediction.advance()) {
  }
  EXPECT_EQ(prediction.status(), Status::kInvalidToken);
  auto own = trainer.predict_in_slices(ids, y);
  while (own.advance()) {
  }
  EXPECT_EQ(own.status(), Status::kInvalidToken);
  EXPECT_EQ(trainer.accumulate(Model::Input{1, 3}, target).status, Status::kOk);
}

}  // namespace
