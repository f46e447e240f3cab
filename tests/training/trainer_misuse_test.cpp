// What a Trainer does with what goes wrong: data, options and calls that are not as they should be.
#include <attune/training/trainer.hpp>

#include <array>
#include <span>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/huber.hpp>
#include <attune/training/parameter_groups.hpp>

#include "check.hpp"
#include "training/batch_data.hpp"

namespace {

using attune::GradientClipping;
using attune::NoClipping;
using attune::Status;
using check::kInfinity;
using check::kNan;

constexpr int kBatch = 4;
using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
template <class Optimizer = attune::AdamW, class Loss = attune::MeanSquaredError, int batch = kBatch>
using TrainerOf = attune::Trainer<Model, Loss, Optimizer, batch>;

template <class Trainer>
using Data = check::BatchData<Trainer, 2>;

template <class Trainer>
Trainer fresh() {
  Trainer trainer{};
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  return trainer;
}

template <class Result>
void expect_refused(const Result& result, Status status) {
  EXPECT_EQ(result.status, status);
  EXPECT_FALSE(result.ok());
  EXPECT_TRUE(check::is_nan(result.loss));
  EXPECT_TRUE(check::is_nan(result.gradient_norm));
}

// Whatever `step` does, it is refused, and training goes on as if it had not been tried.
template <class Trainer, class Step>
void expect_harmless(Status status, const Step& step) {
  Trainer disturbed = fresh<Trainer>(), calm = fresh<Trainer>();
  const Data<Trainer> good(1);
  EXPECT_TRUE(disturbed.step(good.x, good.target, {}).ok());
  EXPECT_TRUE(calm.step(good.x, good.target, {}).ok());
  expect_refused(step(disturbed), status);
  EXPECT_TRUE(disturbed.step(good.x, good.target, {}).ok());
  EXPECT_TRUE(calm.step(good.x, good.target, {}).ok());
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}

}  // namespace

TEST(TrainerMisuse, refused_calls_have_no_loss) {
  using Trainer = TrainerOf<>;
  const Data<Trainer> data(2);
  Trainer trainer = fresh<Trainer>();
  expect_refused(trainer.step(data.x, data.target, {.learning_rate = -1}), Status::kInvalidLearningRate);
  expect_refused(trainer.step(data.x, data.target, {}, GradientClipping{0}), Status::kInvalidMaxNorm);
  expect_refused(trainer.update({}), Status::kIncompleteBatch);
  expect_refused(trainer.update_incomplete({}), Status::kIncompleteBatch);
  Data<Trainer> bad(2);
  bad.x(0, 0) = kNan<float>;
  expect_refused(trainer.step(bad.x, bad.target, {}), Status::kNotFinite);
  static_assert(!std::is_convertible_v<Trainer::Result, float>);
  static_assert(!std::is_convertible_v<attune::LossResult<float>, float>);
}

TEST(TrainerMisuse, a_sequence_that_is_not_finite_is_refused_alone) {
  using Trainer = TrainerOf<>;
  Trainer disturbed = fresh<Trainer>(), calm = fresh<Trainer>();
  const Data<Trainer> data(3);
  for (int i = 0; i < kBatch; ++i) {
    Model::Output bad{};
    bad(1, 1) = kInfinity<float>;
    const auto refused = disturbed.accumulate(data.input(i), bad);
    EXPECT_EQ(refused.status, Status::kNotFinite);
    EXPECT_TRUE(check::is_nan(refused.loss));
    const auto added = disturbed.accumulate(data.input(i), data.target_of(i));
    EXPECT_TRUE(added.ok());
    EXPECT_EQ(added.loss, calm.accumulate(data.input(i), data.target_of(i)).loss);
  }
  EXPECT_TRUE(disturbed.update({}).ok());
  EXPECT_TRUE(calm.update({}).ok());
  EXPECT_TRUE(check::same_bits(disturbed.parameters(), calm.parameters()));
}

TEST(TrainerMisuse, accumulate_returns_the_output_and_the_loss) {
  using Trainer = TrainerOf<>;
  Trainer trainer = fresh<Trainer>();
  const Data<Trainer> data(4);
  Model::Output expected, seen{}, dy;
  Model::forward(trainer.parameters(), data.input(0), expected);
  const float loss = attune::MeanSquaredError::forward(expected, data.target_of(0), dy);
  const auto added = trainer.accumulate(data.input(0), data.target_of(0), attune::NoMask{}, {},
                                        [&seen](attune::ConstView<Model::Output> y) {
                                          for (int i = 0; i < Model::Output::size; ++i)
                                            seen.values[i] = y.data[i];
                                        });
  EXPECT_TRUE(check::same_bits(seen, expected));
  EXPECT_EQ(added.loss, loss);
}

TEST(TrainerMisuse, an_incomplete_batch_is_the_mean_of_its_sequences) {
  TrainerOf<> of_four = fresh<TrainerOf<>>();
  using OfTwo = TrainerOf<attune::AdamW, attune::MeanSquaredError, 2>;
  OfTwo of_two = fresh<OfTwo>();
  const Data<TrainerOf<>> data(5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(of_four.accumulate(data.input(i), data.target_of(i)).ok());
    EXPECT_TRUE(of_two.accumulate(data.input(i), data.target_of(i)).ok());
  }
  expect_refused(of_four.update({}), Status::kIncompleteBatch);
  const auto a = of_four.update_incomplete({}, GradientClipping{0.1f});
  const auto b = of_two.update({}, GradientClipping{0.1f});
  EXPECT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gradient_norm, b.gradient_norm);
  EXPECT_TRUE(check::same_bits(of_four.parameters(), of_two.parameters()));
  expect_refused(of_four.update_incomplete({}), Status::kIncompleteBatch);
}

TEST(TrainerMisuse, the_norm_is_that_of_the_mean_gradient_before_clipping) {
  using Trainer = TrainerOf<>;
  const Data<Trainer> data(6);
  Trainer trainer = fresh<Trainer>();
  const auto plain = trainer.step(data.x, data.target, {.learning_rate = 0});
  const auto clipped = trainer.step(data.x, data.target, {.learning_rate = 0}, GradientClipping{1e-3f});
  for (int i = 0; i < kBatch; ++i) EXPECT_TRUE(trainer.accumulate(data.input(i), data.target_of(i)).ok());
  double squares = 0;
  attune::for_each_tensor(
      [&squares](const attune::TensorPath&, const auto& tensor) {
        for (const float g : tensor.values) squares += static_cast<double>(g) * static_cast<double>(g);
      },
      trainer.gradients());
  const double norm = attune::kernels::square_root(squares) / kBatch;
  EXPECT_NEAR(plain.gradient_norm, norm, 8 * 0x1p-24 * norm);
  EXPECT_NEAR(clipped.gradient_norm, norm, 8 * 0x1p-24 * norm);
}

TEST(TrainerMisuse, overflowing_gradient_norms_change_nothing) {
  const auto step_with = [](auto& trainer, float size, const auto& clipping) {
    using Trainer = std::remove_cvref_t<decltype(trainer)>;
    Data<Trainer> data(7);
    // The loss, about 5·size², is finite; so is every gradient.
    for (float& value : data.target.values) value *= size;
    for (float& value : data.x.values) value = value < 0 ? -1.0f : 1.0f;
    return trainer.step(data.x, data.target, {}, clipping);
  };
  using Huber = attune::Huber<attune::HuberOptions{.reduction = attune::Reduction::kSum, .delta = 1e33}>;
  using Adam = TrainerOf<attune::AdamW, Huber>;
  using Sgd = TrainerOf<attune::Sgd<>, Huber>;
  expect_harmless<Adam>(Status::kNotFinite, [&](Adam& t) { return step_with(t, 8e18f, NoClipping{}); });
  expect_harmless<Sgd>(Status::kNotFinite, [&](Sgd& t) { return step_with(t, 8e18f, NoClipping{}); });
  // Clipped it is short enough, and trains.
  Adam trainer = fresh<Adam>();
  EXPECT_TRUE(step_with(trainer, 8e18f, GradientClipping{1.0f}).ok());
  expect_harmless<Adam>(Status::kNotFinite,
                        [&](Adam& t) { return step_with(t, 8e18f, GradientClipping{1e30f}); });
}

namespace {

// L = Σ y·1.5e38: with two rows of ones every entry of the gradient is 3e38, finite, and their norm is not.
struct Steep {
  static constexpr bool kMeanOverBatch = false;
  static attune::LossSum<float> sum(attune::ConstView<Model::Output>, attune::ConstView<Model::Output>,
                                    attune::View<Model::Output> dy) {
    for (int i = 0; i < Model::Output::size; ++i) dy.data[i] = 1.5e38f;
    return {1};
  }
};

}  // namespace

TEST(TrainerMisuse, a_norm_that_overflows_changes_nothing) {
  using Trainer = TrainerOf<attune::AdamW, Steep, 1>;
  Trainer trainer = fresh<Trainer>();
  const Model::Parameters before = trainer.parameters();
  const Model::Input x{{1, 1, 1, 1, 1, 1}};
  expect_refused(trainer.step(x, Model::Output{}, {}, GradientClipping{1.0f}), Status::kNotFinite);
  EXPECT_TRUE(check::same_bits(trainer.parameters(), before));
}

TEST(TrainerMisuse, rates_that_could_overflow_parameters_are_refused) {
  using Adam = TrainerOf<>;
  using Sgd = TrainerOf<attune::Sgd<>>;
  const Data<Adam> data(8);
  expect_harmless<Sgd>(Status::kInvalidLearningRate, [&](Sgd& trainer) {
    return trainer.step(data.x, data.target, {.learning_rate = 1e30f});
  });
  expect_harmless<Adam>(Status::kInvalidLearningRate, [&](Adam& trainer) {
    return trainer.step(data.x, data.target, {.learning_rate = 1e30f});
  });
  expect_harmless<Sgd>(Status::kInvalidWeightDecay, [&](Sgd& trainer) {
    return trainer.step(data.x, data.target, {.learning_rate = 1, .weight_decay = 2});
  });
  expect_harmless<Adam>(Status::kInvalidWeightDecay, [&](Adam& trainer) {
    return trainer.step(data.x, data.target, {.learning_rate = 1e-3f, .weight_decay = 1e4f});
  });
  // At the bounds parameters stay finite, however often.
  Sgd trainer = fresh<Sgd>();
  Status last = Status::kOk;
  for (int step = 0; step < 100; ++step) {
    last = trainer.step(data.x, data.target, {.learning_rate = 1e12f}).status;
    EXPECT_TRUE(last == Status::kOk || last == Status::kNotFinite);
  }
  EXPECT_EQ(last, Status::kNotFinite);
  EXPECT_TRUE(attune::detail::finite(attune::gradient_norm<float>(trainer.parameters())));
}

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 4, .num_heads = 1};
using Attention = attune::MultiHeadAttention<kShape>;

}  // namespace

TEST(TrainerMisuse, step_takes_a_mask_for_each_sequence) {
  using Trainer = attune::Trainer<Attention, attune::MeanSquaredError, attune::AdamW, 3>;
  static Trainer stepped, spanned, accumulated;
  std::array<attune::KeyPaddingMask<4>, 3> masks;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(masks[static_cast<std::size_t>(i)].set_length(2 + i), Status::kOk);
  attune::Rng rng(9);
  Trainer::BatchInput x, target;
  check::fill(x, rng);
  check::fill(target, rng);
  for (Trainer* trainer : {&stepped, &spanned, &accumulated}) {
    trainer->initialize(attune::XavierUniform{}, attune::Rng{1});
  }
  EXPECT_TRUE(stepped.step(x, target, {}, NoClipping{}, masks).ok());
  EXPECT_TRUE(spanned.step(x, target, {}, NoClipping{}, std::span(std::as_const(masks))).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(accumulated
                    .accumulate(attune::view(x).rows_at<4>(i * 4), attune::view(target).rows_at<4>(i * 4),
                                masks[static_cast<std::size_t>(i)])
                    .ok());
  }
  EXPECT_TRUE(accumulated.update({}).ok());
  EXPECT_TRUE(check::same_bits(stepped.parameters(), accumulated.parameters()));
  EXPECT_TRUE(check::same_bits(spanned.parameters(), accumulated.parameters()));
}
