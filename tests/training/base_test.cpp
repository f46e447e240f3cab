// Adapters belong to the constants that they were trained beside.
#include <attune/training/state.hpp>

#include <cstddef>
#include <string_view>

#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using Front = Linear<LinearShape{.rows = 3, .d_in = 2, .d_out = 4}>;
using Encoder =
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 5}>;
using Head = Linear<LinearShape{.rows = 3, .d_in = 4, .d_out = 2}>;
using Whole = Sequential<Front, Repeat<2, Checkpointed<Encoder>>, Residual<Linear<LinearShape{3, 4, 4}>>>;

using Square = Linear<LinearShape{.rows = 3, .d_in = 4, .d_out = 4}>;

// Bases in RAM, so that they can change between two calls as an update of the firmware changes them.
Whole::Parameters float_base;
Whole::ParametersOf<TransposedTensor, Tensor> transposed_base;
Whole::ParametersOf<Int8Weights, Tensor> int8_base;
Whole::ParametersOf<Bfloat16Weights, Tensor> bfloat16_base;
Square::Parameters square_base;
constexpr LowRank kLowRank{.rank = 2};

void fill_bases() {
  Rng rng(3);
  initialize(float_base, XavierUniform{}, rng);
  initialize(square_base, XavierUniform{}, rng);
  copy_parameters(float_base, transposed_base);
  EXPECT_EQ(quantize(float_base, int8_base), Status::kOk);
  EXPECT_EQ(quantize(float_base, bfloat16_base), Status::kOk);
}

template <class Model>
using TrainerOf = Trainer<Sequential<Model, Head>, MeanSquaredError>;

template <class T>
void take_step(T& trainer) {
  typename T::BatchInput x;
  typename T::BatchTarget target;
  Rng rng(7);
  check::fill(x, rng);
  check::fill(target, rng);
  EXPECT_EQ(trainer.step(x, target, {}).status, Status::kOk);
}

// Each bit of some bytes of a base, spread over all of it, is part of it.
template <class Model, class Constants>
void expect_belongs_to(Constants& base) {
  using T = TrainerOf<Model>;
  static T trainer, other;
  static typename T::State state;
  fill_bases();
  trainer.initialize(XavierUniform{}, Rng{1});
  take_step(trainer);
  state = trainer.state();
  other.initialize(XavierUniform{}, Rng{2});
  EXPECT_EQ(other.resume(state), Status::kOk);
  other.initialize(XavierUniform{}, Rng{2});
  auto* const bytes = reinterpret_cast<unsigned char*>(&base);
  for (std::size_t at = 0; at < sizeof base; at += 13) {
    const auto bit = static_cast<unsigned char>(1u << at % 8);
    bytes[at] = static_cast<unsigned char>(bytes[at] ^ bit);
    EXPECT_EQ(state.check(), Status::kOtherBase);
    EXPECT_EQ(other.resume(state), Status::kOtherBase);
    bytes[at] = static_cast<unsigned char>(bytes[at] ^ bit);
  }
  EXPECT_EQ(other.state().steps, 0u);  // nothing has changed
  take_step(other);
  EXPECT_EQ(other.resume(state), Status::kOk);
}

}  // namespace

TEST(Base, of_floats_belongs_to_the_state) {
  expect_belongs_to<Frozen<Whole, float_base>>(float_base);
  expect_belongs_to<BiasesAndNorms<Whole, float_base>>(float_base);
  expect_belongs_to<Adapted<Whole, float_base, kLowRank>>(float_base);
}

TEST(Base, of_8_bits_belongs_to_the_state) {
  expect_belongs_to<Adapted<Whole, int8_base, kLowRank>>(int8_base);
}

TEST(Base, of_packed_integers_is_another_than_the_same_integers_widened) {
  static Whole::ParametersOf<PackedInt8Weights, Tensor> packed_base;
  fill_bases();
  ASSERT_EQ(pack(int8_base, packed_base), Status::kOk);
  using Packed = TrainingState<Adapted<Whole, packed_base, kLowRank>, AdamW>;
  const std::uint32_t before = Packed::numbers();
  EXPECT_NE(before, (TrainingState<Adapted<Whole, int8_base, kLowRank>, AdamW>::numbers()));
  // The state of one is known beside the other.
  static Packed packed;
  static TrainingState<Adapted<Whole, int8_base, kLowRank>, AdamW> widened;
  packed.fingerprint_of_type = widened.fingerprint_of_type = Packed::kFingerprint;
  packed.fingerprint_of_numbers = widened.numbers();
  widened.fingerprint_of_numbers = Packed::numbers();
  EXPECT_EQ(packed.check(), Status::kOtherPrecision);
  EXPECT_EQ(widened.check(), Status::kOtherPrecision);
  packed.fingerprint_of_numbers ^= 1;
  EXPECT_EQ(packed.check(), Status::kOtherBase);
  ASSERT_EQ(quantize(float_base, packed_base), Status::kOk);  // the same again
  EXPECT_EQ(Packed::numbers(), before);
  float_base.layer<0>().weight(0, 0) *= 2;
  ASSERT_EQ(quantize(float_base, packed_base), Status::kOk);
  EXPECT_NE(Packed::numbers(), before);
}

TEST(Base, of_16_bits_belongs_to_the_state) {
  expect_belongs_to<Frozen<Whole, bfloat16_base>>(bfloat16_base);
}

TEST(Base, is_found_in_parts_of_parts) {
  expect_belongs_to<Sequential<Front, Residual<Frozen<Square, square_base>>>>(square_base);
  expect_belongs_to<Sequential<Front, Repeat<2, Checkpointed<Frozen<Square, square_base>>>>>(square_base);
}

TEST(Base, is_the_same_at_another_address_and_transposed) {
  using Own = TrainingState<Adapted<Whole, float_base, kLowRank>, AdamW>;
  using Transposed = TrainingState<Adapted<Whole, transposed_base, kLowRank>, AdamW>;
  static_assert(Own::kFingerprint == Transposed::kFingerprint);
  fill_bases();
  EXPECT_EQ(Own::numbers(), Transposed::numbers());
}

TEST(Base, of_another_program_leaves_a_trainer_that_read_it_to_be_begun) {
  using T = TrainerOf<Adapted<Whole, float_base, kLowRank>>;
  static T trainer;
  static typename T::State state;
  fill_bases();
  trainer.initialize(XavierUniform{}, Rng{1});
  state = trainer.state();
  square_base.weight(0, 0) += 1;  // of nothing in the model
  EXPECT_EQ(state.check(), Status::kOk);
  float_base.layer<0>().weight(0, 0) += 1;
  const auto read = [](auto& into) {
    into = state;
    return Status::kOk;
  };
  EXPECT_EQ(trainer.resume(read), Status::kOtherBase);
  typename T::BatchInput x{};
  typename T::BatchTarget target{};
  EXPECT_EQ(trainer.step(x, target, {}).status, Status::kNotInitialized);
  // Its parameters may be taken on, where the new base is known to suit them.
  trainer.load(trainer.state().parameters);
  take_step(trainer);
}

TEST(Base, differs_between_arithmetics) {
  using T = TrainerOf<Adapted<Whole, float_base, kLowRank>>;
  static typename T::State state;
  fill_bases();
  state.fingerprint_of_type = T::State::kFingerprint;
  for (const char* const name : {"unfused", "fused", "fused_mve"}) {
    const std::uint32_t arithmetic = fingerprint(std::string_view(name));
    state.fingerprint_of_numbers = T::State::numbers() - T::State::kArithmetic + arithmetic;
    EXPECT_EQ(state.check(), arithmetic == T::State::kArithmetic ? Status::kOk : Status::kOtherArithmetic);
  }
}
