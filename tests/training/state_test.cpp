// What resumes from a state goes on to the bits of what never stopped.
#include <attune/training/state.hpp>

#include <cstring>
#include <new>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/softmax.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/adafactor.hpp>
#include <attune/training/parameter_groups.hpp>
#include <attune/training/stochastic_bfloat16.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr AttentionShape kAttention{.seq_len = 4, .d_model = 8, .num_heads = 2};
constexpr EncoderLayerShape kEncoder{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.5}, .d_ff = 8};
using Plain = Sequential<Linear<LinearShape{4, 8, 8}>, MultiHeadAttention<kAttention>>;
using Dropping = Sequential<Linear<LinearShape{4, 8, 8}>, EncoderLayer<kEncoder>>;

template <class State>
void expect_same(const State& a, const State& b) {
  EXPECT_TRUE(check::same_bits(a.parameters, b.parameters));
  EXPECT_TRUE(hash_bits(a) == hash_bits(b));  // moments, too
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(a.fingerprint_of_type, b.fingerprint_of_type);
  if constexpr (State::kDrops) {
    EXPECT_EQ(a.masks.generator, b.masks.generator);
    EXPECT_EQ(a.masks.sequences, b.masks.sequences);
  }
}

// One step, with data of its number.
template <class T, class Clipping>
void take_step(T& trainer, int step, const Clipping& clipping) {
  static typename T::BatchInput x;
  static typename T::BatchTarget target;
  Rng rng(static_cast<std::uint64_t>(100 + step));
  check::fill(x, rng);
  check::fill(target, rng);
  EXPECT_EQ(trainer.step(x, target, {}, clipping).status, Status::kOk);
}

constexpr AdamVariant kAdamOfKeras{.epsilon = EpsilonPlacement::kBeforeBiasCorrection};
using Mse = MeanSquaredError;

// The bytes of the state of a training in memory that held `garbage` before; where it resumes, after a copy.
template <class T>
void train_over(unsigned char garbage, unsigned char* bytes, bool resumes) {
  alignas(T) static unsigned char memory[sizeof(T)], other[sizeof(T)];
  const auto trainer_in = [garbage](unsigned char* place) -> T& {
    for (std::size_t i = 0; i < sizeof(T); ++i) const_cast<volatile unsigned char&>(place[i]) = garbage;
    return *std::launder(reinterpret_cast<T*>(place));
  };
  T& trainer = trainer_in(memory);
  trainer.initialize(XavierUniform{}, Rng{1});
  for (int step = 0; step < 3; ++step) take_step(trainer, step, NoClipping{});
  if (!resumes) {
    std::memcpy(bytes, &trainer.state(), sizeof trainer.state());
    return;
  }
  T& resumed = trainer_in(other);
  EXPECT_EQ(resumed.resume(trainer.state()), Status::kOk);
  std::memcpy(bytes, &resumed.state(), sizeof resumed.state());
}

template <class T>
void expect_equal_bytes() {
  static unsigned char first[sizeof(typename T::State)], second[sizeof(typename T::State)];
  train_over<T>(0xAA, first, false);
  train_over<T>(0x55, second, false);
  EXPECT_EQ(std::memcmp(first, second, sizeof first), 0);
  train_over<T>(0x33, second, true);
  EXPECT_EQ(std::memcmp(first, second, sizeof first), 0);
}

// reset() clears every byte of the moments, padding included.
template <class Optimizer>
void expect_cleared_moments() {
  using Moments = typename Optimizer::template Moments<Linear<LinearShape{1, 3, 3}>::Parameters>;
  alignas(Moments) static unsigned char bytes[sizeof(Moments)];
  for (volatile unsigned char& byte : bytes) byte = 0xAA;
  std::launder(reinterpret_cast<Moments*>(bytes))->reset();
  std::size_t left = 0;
  for (const volatile unsigned char& byte : bytes) left += byte != 0;
  EXPECT_EQ(left, 0u) << sizeof(Moments);
}
template <class... Bases>
void expect_cleared_moments_around() {
  (expect_cleared_moments<Bases>(), ...);
  (expect_cleared_moments<ParameterGroups<Bases>>(), ...);
  (expect_cleared_moments<StochasticBfloat16<Bases>>(), ...);
  (expect_cleared_moments<StochasticBfloat16<ParameterGroups<Bases>>>(), ...);
}

}  // namespace

TEST(State, a_trainer_that_nobody_has_begun_refuses_to_train) {
  using T = Trainer<Plain, Mse, AdamW, 2>;
  static T trainer;
  static T::BatchInput x;
  static T::BatchTarget target;
  const T::Parameters before = trainer.parameters();
  EXPECT_EQ(trainer.step(x, target, {}).status, Status::kNotInitialized);
  EXPECT_EQ(trainer.accumulate(T::InputView(x.data()), T::TargetView(target.data())).status,
            Status::kNotInitialized);
  EXPECT_EQ(trainer.update({}).status, Status::kNotInitialized);
  static Plain::Input one;
  static Plain::Output one_target;
  auto slices = trainer.accumulate_in_slices(one, one_target);
  EXPECT_FALSE(slices.advance());
  EXPECT_EQ(slices.result().status, Status::kNotInitialized);
  EXPECT_TRUE(check::same_bits(trainer.parameters(), before));
  static Trainer<Plain, Mse, AdamW, 1, UpdateInBackward> in_backward;
  EXPECT_EQ(in_backward.step(one, one_target, {}).status, Status::kNotInitialized);
  trainer.initialize(XavierUniform{}, Rng{1});
  EXPECT_EQ(trainer.step(x, target, {}).status, Status::kOk);
}

TEST(State, copied_within_an_update_stays_refused_by_another_trainer) {
  using T = Trainer<Plain, Mse, AdamW>;
  static T first, second;
  static Plain::Input x;
  static Plain::Output target;
  first.initialize(XavierUniform{}, Rng{1});
  second.initialize(XavierUniform{}, Rng{2});
  EXPECT_TRUE(first.accumulate(x, target).ok());
  auto update = first.update_in_slices<64>({});
  while (first.state().check() == Status::kOk) update.advance();
  EXPECT_TRUE(update.advance());
  EXPECT_FALSE(update.done());
  static T::State copy;
  copy = first.state();
  EXPECT_EQ(second.resume(copy), Status::kUnderWay);
  EXPECT_TRUE(second.step(x, target, {}).ok());  // nothing has changed
  EXPECT_EQ(second.resume([](T::State& own) {
    own = copy;
    return Status::kOk;
  }),
            Status::kUnderWay);
  EXPECT_EQ(second.state().check(), Status::kUnderWay);
  EXPECT_EQ(second.step(x, target, {}).status, Status::kNotInitialized);
  second.initialize(XavierUniform{}, Rng{2});
  EXPECT_TRUE(second.step(x, target, {}).ok());
}

TEST(State, equal_trainings_have_equal_bytes) {
  using Odd = Sequential<Linear<LinearShape{4, 8, 8}>, Linear<LinearShape{4, 8, 7, false}>,
                         Linear<LinearShape{4, 7, 1, false}>>;  // an odd number of parameters
  expect_equal_bytes<Trainer<Odd, Mse, AdamW, 3>>();
  expect_equal_bytes<Trainer<Odd, Mse, Sgd<>, 3>>();
  expect_equal_bytes<Trainer<Odd, Mse, Adam<AdamVariant{.moments = MomentPrecision::kBfloat16}>, 3>>();
  expect_equal_bytes<Trainer<Dropping, Mse, AdamW, 3>>();
  using Int8Momentum = Sgd<Momentum::kClassic, float, MomentPrecision::kInt8>;
  expect_equal_bytes<Trainer<Odd, Mse, StochasticBfloat16<ParameterGroups<Int8Momentum>>>>();
}

TEST(State, reset_moments_have_equal_bytes) {
  using enum MomentPrecision;
  expect_cleared_moments_around<
      AdamW, Adam<AdamVariant{.moments = kBfloat16}>, Adam<AdamVariant{.moments = kInt8}>,
      Adam<AdamVariant{.moments = kInt8Stochastic}>, Adam<AdamVariant{.first_moment = FirstMoment::kNone}>,
      Adam<AdamVariant{.moments = kInt8, .first_moment = FirstMoment::kNone}>, Sgd<Momentum::kClassic>,
      Sgd<Momentum::kClassic, float, kBfloat16>, Sgd<Momentum::kClassic, float, kInt8>,
      Sgd<Momentum::kClassic, float, kInt8Stochastic>, Adafactor<>>();
  expect_cleared_moments<ParameterGroups<Sgd<>>>();
  expect_cleared_moments<StochasticBfloat16<Sgd<>>>();
}

namespace {

using Small = Trainer<Dropping, Mse, AdamW, 3>;
struct Sequence {
  Dropping::Input x;
  Dropping::Output target;
  explicit Sequence(std::uint64_t seed) {
    Rng rng(seed);
    check::fill(x, rng);
    check::fill(target, rng);
  }
};

}  // namespace

// A store that has nothing, asked at any time, leaves a training behind its last step.
TEST(State, a_missing_state_leaves_training_after_its_last_step) {
  static Small trainer, undisturbed;
  static Small::BatchInput x;
  Rng rng(3);
  check::fill(x, rng);
  const auto one = Small::InputView(&x(0, 0));
  const auto nothing = [](Small::State&) { return Status::kNothingStored; };
  for (const int slices : {0, 5, 20, 60, 100}) {
    trainer.initialize(XavierUniform{}, Rng{1});
    undisturbed.initialize(XavierUniform{}, Rng{1});
    EXPECT_EQ(trainer.accumulate(one, one).status, Status::kOk);
    auto pass = trainer.accumulate_in_slices<50>(one, one);
    for (int i = 0; i < slices && pass.advance();) ++i;
    EXPECT_TRUE(!pass.done());
    EXPECT_EQ(trainer.resume(nothing), Status::kNothingStored);
    EXPECT_TRUE(pass.done());
    for (Small* const each : {&trainer, &undisturbed}) EXPECT_EQ(each->step(x, x, {}).status, Status::kOk);
    expect_same(trainer.state(), undisturbed.state());
  }
}

TEST(State, plans_and_batches_may_change_between_runs) {
  static Trainer<Plain, Mse, AdamW, 1> one;
  static Trainer<Plain, Mse, AdamW, 1, UpdateInBackward> in_backward;
  static Trainer<Plain, Mse, AdamW, 5, Lockstep> lockstep;
  one.initialize(XavierUniform{}, Rng{1});
  take_step(one, 0, NoClipping{});
  ASSERT_EQ(in_backward.resume(one.state()), Status::kOk);
  ASSERT_EQ(lockstep.resume(one.state()), Status::kOk);
  take_step(one, 1, NoClipping{});
  take_step(in_backward, 1, NoClipping{});
  expect_same(in_backward.state(), one.state());
  take_step(lockstep, 2, NoClipping{});
  EXPECT_EQ(lockstep.state().steps, 2u);
}

TEST(State, is_the_state_after_the_last_step) {
  static Small trainer, resumed;
  trainer.initialize(XavierUniform{}, Rng{1});
  take_step(trainer, 0, NoClipping{});
  static Small::State before;
  before = trainer.state();
  const Sequence a(1), b(2);
  ASSERT_TRUE(trainer.accumulate(a.x, a.target).ok());
  expect_same(trainer.state(), before);
  // Whoever resumes has accumulated nothing, whatever it had.
  ASSERT_EQ(resumed.resume(before), Status::kOk);
  ASSERT_TRUE(resumed.accumulate(b.x, b.target).ok());
  ASSERT_EQ(resumed.resume(before), Status::kOk);
  EXPECT_EQ(resumed.update_incomplete({}).status, Status::kIncompleteBatch);
  ASSERT_TRUE(resumed.accumulate(a.x, a.target).ok());
  ASSERT_TRUE(trainer.update_incomplete({}).ok());
  ASSERT_TRUE(resumed.update_incomplete({}).ok());
  expect_same(resumed.state(), trainer.state());
  // A refused step is none.
  EXPECT_EQ(trainer.update({}).status, Status::kIncompleteBatch);
  EXPECT_EQ(trainer.state().steps, 2u);
}

TEST(State, of_nobody_or_of_others_is_refused_and_changes_nothing) {
  static Small trainer;
  static Small::State state, before;
  trainer.initialize(XavierUniform{}, Rng{1});
  take_step(trainer, 0, NoClipping{});
  before = trainer.state();
  EXPECT_EQ(trainer.resume(state), Status::kOtherState);  // zeros
  static Small never_started;
  EXPECT_EQ(trainer.resume(never_started.state()), Status::kOtherState);
  state = before;
  ++state.fingerprint_of_type;
  EXPECT_EQ(trainer.resume(state), Status::kOtherState);
  state = before;
  ++state.fingerprint_of_numbers;
  EXPECT_EQ(trainer.resume(state), Status::kOtherArithmetic);
  EXPECT_EQ(trainer.resume([](auto&) { return Status::kCutShort; }), Status::kCutShort);
  expect_same(trainer.state(), before);
  // Parameters of another arithmetic may be taken.
  EXPECT_EQ(trainer.resume([](auto& into) {
    into = state;
    return Status::kOk;
  }),
            Status::kOtherArithmetic);
  trainer.load(trainer.state().parameters, Rng{1});
  EXPECT_EQ(trainer.resume(trainer.state()), Status::kOk);
  EXPECT_EQ(trainer.state().steps, 0u);
}

TEST(State, tensors_have_names) {
  static Trainer<Linear<LinearShape{1, 2, 3, false}>>::State state;
  int count = 0;
  for_each_tensor(
      [&count](const TensorPath& path, const auto& tensor) {
        constexpr std::string_view kNames[] = {"parameters", "first", "second"};
        EXPECT_EQ(std::string_view(path.name), "weight");
        EXPECT_EQ(std::string_view(path.parent->name), kNames[count]);
        EXPECT_EQ(std::string_view(count == 0 ? "moments" : path.parent->parent->name), "moments");
        EXPECT_EQ(tensor.size, 6);
        ++count;
      },
      state);
  EXPECT_EQ(count, 3);
}

namespace {

template <class Model, class Optimizer = AdamW>
constexpr std::uint32_t kOf = TrainingState<Model, Optimizer>::kFingerprint;
template <AttentionShape shape>
constexpr std::uint32_t kOfAttention = kOf<MultiHeadAttention<shape>>;
template <EncoderLayerShape shape>
constexpr std::uint32_t kOfEncoder = kOf<EncoderLayer<shape>>;
using Square = Linear<LinearShape{4, 8, 8}>;
// A layer of one's own that says nothing.
struct OnesOwn : ActivationLayer<Activation::kRelu, 1, 8> {
 private:
  static constexpr std::uint32_t kFingerprint = 0;
};
template <class Member>
constexpr EncoderLayerShape with(Member EncoderLayerShape::*member, Member value) {
  EncoderLayerShape shape{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8};
  shape.*member = value;
  return shape;
}

}  // namespace

// The same tensors, another meaning.
TEST(StateFingerprint, covers_more_than_tensors) {
  constexpr AttentionShape k4Heads{.seq_len = 4, .d_model = 8, .num_heads = 4};
  constexpr AttentionShape kRotary{.seq_len = 4, .d_model = 8, .num_heads = 2, .rotary_dim = 2};
  EXPECT_NE(kOfAttention<kAttention>, kOfAttention<k4Heads>);
  EXPECT_NE(kOfAttention<kAttention>, kOfAttention<kRotary>);
  constexpr std::uint32_t kPlain = kOfEncoder<with(&EncoderLayerShape::d_ff, 8)>;
  EXPECT_NE(kPlain, kOfEncoder<with(&EncoderLayerShape::activation, Activation::kGelu)>);
  EXPECT_NE(kPlain, kOfEncoder<with(&EncoderLayerShape::norm, NormPlacement::kBefore)>);
  EXPECT_NE(kPlain, kOfEncoder<with(&EncoderLayerShape::epsilon, 1e-6)>);
  constexpr EncoderLayerShape kDropping{
      .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.1}, .d_ff = 8};
  EXPECT_NE(kPlain, kOfEncoder<kDropping>);
  constexpr EncoderLayerShape kOneHead{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 1}, .d_ff = 8};
  EXPECT_NE(kPlain, kOfEncoder<kOneHead>);
  using Relu = ActivationLayer<Activation::kRelu, 4, 8>;
  using Gelu = ActivationLayer<Activation::kGelu, 4, 8>;
  EXPECT_NE((kOf<Sequential<Square, Relu>>), (kOf<Sequential<Square, Gelu>>));
  EXPECT_NE((kOf<Sequential<Square>>), (kOf<Sequential<Residual<Square>>>));
  EXPECT_NE((kOf<Sequential<Square, Softmax<4, 8>>>), (kOf<Sequential<Square, LogSoftmax<4, 8>>>));
  using Narrow = Sequential<Linear<LinearShape{4, 8, 2}>, Linear<LinearShape{4, 2, 8}>>;
  using Wide = Sequential<Square, Square>;
  static constexpr Narrow::Parameters kQuantized{};
  static constexpr Wide::Parameters kWide{};
  EXPECT_NE((kOf<Sequential<Frozen<Narrow, kQuantized>, Square>>),
            (kOf<Sequential<Frozen<Wide, kWide>, Square>>));
  using Row = Linear<LinearShape{1, 8, 8}>;
  using ReluOfRow = ActivationLayer<Activation::kRelu, 1, 8>;
  EXPECT_NE((kOf<Sequential<Row, ReluOfRow>>), (kOf<Sequential<Row, Pooling<PoolingShape{1, 8}>>>));
  EXPECT_NE((kOf<Sequential<Row, ReluOfRow>>), (kOf<Sequential<Row, OnesOwn>>));
  EXPECT_NE((kOf<Sequential<Row>>), (kOf<Sequential<Row, OnesOwn>>));
  EXPECT_NE((kOf<Square, AdamW>), (kOf<Square, Adam<kAdamOfKeras>>));
  EXPECT_NE((kOf<Square, Sgd<>>), (kOf<Square, Sgd<Momentum::kNesterov>>));
  EXPECT_NE((kOf<Square, AdamW>), (kOf<Square, ParameterGroups<AdamW>>));
  EXPECT_NE((kOf<Square>), (kOf<Square::WithScalar<double>, Adam<AdamVariant{}, double>>));
  EXPECT_NE((kOf<Linear<LinearShape{4, 2, 3}>>), (kOf<Linear<LinearShape{4, 3, 2}>>));
}

// On every compiler and target: a state of a PC is one of a board. Bytes, too, in unfused arithmetic.
TEST(StateFingerprint, is_the_same_everywhere) {
  EXPECT_EQ(Small::State::kFingerprint, 2990634691u);
  EXPECT_EQ(sizeof(Small::State), 6480u);
  static Small trainer;
  trainer.initialize(XavierUniform{}, Rng{1});
  for (int step = 0; step < 3; ++step) take_step(trainer, step, NoClipping{});
  std::uint32_t state = 2166136261u;
  for (const unsigned char byte :
       std::bit_cast<std::array<unsigned char, sizeof(Small::State)>>(trainer.state())) {
    state = (state ^ byte) * 16777619u;
  }
  if constexpr (!ATTUNE_FUSED && !ATTUNE_MVE && !ATTUNE_NEON && !ATTUNE_BLAS) EXPECT_EQ(state, 3919583461u);
}
