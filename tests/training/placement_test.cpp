// Wherever the parts of a trainer lie, it trains to the same bits.
#include <attune/training/placement.hpp>

#include <cstddef>
#include <cstring>
#include <span>

#include <attune/models/encoder_layer.hpp>
#include <attune/training/stochastic_bfloat16.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "training/plan_check.hpp"

namespace {

using namespace attune;

using Model = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2, .dropout = 0.25}, .d_ff = 5}>;

SharedBuffers<Model> buffers;
WorkingWeights<Model> weights;
WorkingWeights<Model, Int8Training> integers;
PlacedGradients<Model> gradients;

using Apart = WeightsIn<weights, GradientsIn<gradients, InSharedBuffers<buffers>>>;
template <class Plan, int batch = 2>
using In = Trainer<Model, MeanSquaredError, AdamW, batch, Plan>;

// The trainer keeps parameters, moments and counters.
constexpr MemoryReport kApart = In<Apart>::memory();
static_assert(kApart.gradients == 0 && kApart.tape == 0 && kApart.scratch == 0);
static_assert(kApart.parameters == sizeof(Model::Parameters) && kApart.object() == sizeof(In<Apart>));
static_assert(sizeof weights <= sizeof(Model::Parameters) + 2 * sizeof(void*));
static_assert(sizeof gradients <= sizeof(Model::Parameters) + 2 * sizeof(void*));

TEST(Placement, changes_no_bit) {
  check::expect_same_training<WeightsIn<weights>, Model, 2>();
  check::expect_same_training<GradientsIn<gradients>, Model, 2>();
  check::expect_same_training<Apart, Model, 3, MeanSquaredError, AdamW, BySequence, CausalMask,
                              GradientClipping>({}, {.max_norm = 0.01f});
  check::expect_same_training<GradientsIn<gradients, WeightsIn<weights>>, Model, 2>();
  check::expect_same_training<WeightsIn<weights, UpdateInBackward>, Model, 1>();
  check::expect_same_training<WeightsIn<weights>, Model, 2, MeanSquaredError, StochasticBfloat16<AdamW>>();
}

TEST(Placement, changes_no_bit_in_integers) {
  check::expect_same_training<WeightsIn<integers, Int8Training>, Model, 2, MeanSquaredError, AdamW,
                              Int8Training>();
  check::expect_same_training<WeightsIn<integers, GradientsIn<gradients, Int8Training>>, Model, 2,
                              MeanSquaredError, AdamW, Int8Training>();
  check::expect_same_training<Int8TrainingWith<GradientsIn<gradients>>, Model, 2, MeanSquaredError, AdamW,
                              Int8Training>();
}

struct Example {
  Model::Input x{};
  Model::Output target{};
  explicit Example(Rng& rng) {
    check::fill(x, rng);
    check::fill(target, rng);
  }
};
In<Apart> apart, other;
In<BySequence> alone;

TEST(Placement, memory_may_hold_anything_before_the_first_call) {
  for (auto bytes :
       {std::as_writable_bytes(std::span(&apart, 1)), std::as_writable_bytes(std::span(&weights, 1)),
        std::as_writable_bytes(std::span(&gradients, 1))}) {
    std::memset(bytes.data(), 0xA5, bytes.size());
  }
  apart.initialize(XavierUniform{}, Rng{1});
  alone.initialize(XavierUniform{}, Rng{1});
  Rng rng(2);
  const Example example(rng);
  for (int step = 0; step < 2; ++step) {
    for (int sequence = 0; sequence < 2; ++sequence) {
      auto pass = apart.accumulate_in_slices<50>(example.x, example.target);
      while (pass.advance()) {
      }
      EXPECT_EQ(pass.result().loss, alone.accumulate(example.x, example.target).loss);
    }
    auto update = apart.update_in_slices<50>();
    while (update.advance()) {
    }
    EXPECT_TRUE(update.result().ok() && alone.update().ok());
  }
  EXPECT_TRUE(hash_bits(apart.state()) == hash_bits(alone.state()));
  Model::Output y, expected;
  EXPECT_EQ(apart.predict(example.x, y), Status::kOk);
  EXPECT_EQ(alone.predict(example.x, expected), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(Placement, trainers_that_share_gradients_take_turns_batch_by_batch) {
  apart.initialize(XavierUniform{}, Rng{1});
  alone.initialize(XavierUniform{}, Rng{1});
  other.initialize(XavierUniform{}, Rng{2});
  Rng rng(3);
  const Example example(rng);
  Example bad(rng);
  bad.x(0, 0) = check::kNan<float>;
  EXPECT_EQ(other.accumulate(bad.x, bad.target).status, Status::kNotFinite);  // and takes nothing
  EXPECT_EQ(apart.accumulate(example.x, example.target).status, Status::kOk);
  EXPECT_EQ(other.accumulate(example.x, example.target).status, Status::kUnderWay);
  other.discard();  // its own batch, which is empty
  EXPECT_EQ(apart.accumulate(example.x, example.target).status, Status::kOk);
  EXPECT_TRUE(apart.update().ok());
  for (int sequence = 0; sequence < 2; ++sequence) (void)alone.accumulate(example.x, example.target);
  EXPECT_TRUE(alone.update().ok());
  EXPECT_TRUE(hash_bits(apart.state()) == hash_bits(alone.state()));

  // Weights follow the turns.
  Model::Output y, of_other;
  EXPECT_EQ(apart.predict(example.x, y), Status::kOk);
  EXPECT_EQ(other.predict(example.x, of_other), Status::kOk);
  EXPECT_FALSE(check::same_bits(y, of_other));
  EXPECT_EQ(alone.predict(example.x, of_other), Status::kOk);
  EXPECT_TRUE(check::same_bits(y, of_other));

  // Also between slices, where nothing but weights is shared.
  static In<WeightsIn<weights>> in_slices, between;
  in_slices.initialize(XavierUniform{}, Rng{1});
  between.initialize(XavierUniform{}, Rng{2});
  alone.initialize(XavierUniform{}, Rng{1});
  for (int sequence = 0; sequence < 2; ++sequence) {
    auto pass = in_slices.accumulate_in_slices<50>(example.x, example.target);
    while (pass.advance()) EXPECT_EQ(between.predict(example.x, of_other), Status::kOk);
    EXPECT_EQ(pass.result().loss, alone.accumulate(example.x, example.target).loss);
  }
  EXPECT_TRUE(in_slices.update().ok() && alone.update().ok());
  EXPECT_TRUE(hash_bits(in_slices.state()) == hash_bits(alone.state()));

  // Gradients that are taken between slices end the pass.
  static In<GradientsIn<gradients>> under_way, taker;
  under_way.initialize(XavierUniform{}, Rng{1});
  auto pass = under_way.accumulate_in_slices<50>(example.x, example.target);
  EXPECT_TRUE(pass.advance());
  taker.initialize(XavierUniform{}, Rng{2});
  alone.initialize(XavierUniform{}, Rng{2});
  EXPECT_EQ(taker.accumulate(example.x, example.target).status, Status::kOk);
  while (pass.advance()) {
  }
  EXPECT_EQ(pass.result().status, Status::kUnderWay);
  EXPECT_EQ(taker.accumulate(example.x, example.target).status, Status::kOk);
  for (int sequence = 0; sequence < 2; ++sequence) (void)alone.accumulate(example.x, example.target);
  EXPECT_TRUE(taker.update().ok() && alone.update().ok());
  EXPECT_TRUE(hash_bits(taker.state()) == hash_bits(alone.state()));

  // One that is initialized takes the gradients: a batch under way elsewhere is lost, and says so.
  EXPECT_EQ(apart.accumulate(example.x, example.target).status, Status::kOk);
  other.initialize(XavierUniform{}, Rng{2});
  EXPECT_EQ(apart.accumulate(example.x, example.target).status, Status::kUnderWay);
  EXPECT_EQ(apart.update_incomplete().status, Status::kUnderWay);
  apart.discard();
  EXPECT_EQ(apart.accumulate(example.x, example.target).status, Status::kOk);
  apart.discard();
}

TEST(Placement, an_update_whose_gradients_are_taken_between_slices_ends) {
  Rng rng(4);
  const Example example(rng);
  static In<GradientsIn<gradients>, 1> updated, taker;
  for (const bool has_changed : {false, true}) {
    updated.initialize(XavierUniform{}, Rng{1});
    EXPECT_TRUE(updated.accumulate(example.x, example.target).ok());
    auto update = updated.update_in_slices<1>({}, GradientClipping{0.5f});
    do {
      EXPECT_TRUE(update.advance());
    } while (has_changed && updated.state().check() != Status::kUnderWay);
    taker.initialize(XavierUniform{}, Rng{2});
    const std::uint32_t before = hash_bits(updated.parameters());
    while (update.advance()) {
    }
    EXPECT_EQ(update.result().status, Status::kUnderWay);
    EXPECT_EQ(hash_bits(updated.parameters()), before);
    updated.discard();
    EXPECT_EQ(updated.accumulate(example.x, example.target).status,
              has_changed ? Status::kNotInitialized : Status::kOk);
    updated.discard();
  }
}

}  // namespace
