// Training on a crew of threads, with every kind of layer. With a learning rate of 1, a gradient that differs
// in its last bit changes the parameters.
#include <attune/attune.hpp>

#include <cstring>
#include <memory>

#include <attune/host/thread_pool.hpp>

#include "host/parallel_layers.hpp"

using namespace parallel_layers;

namespace {

using attune::Status;
using attune::host::Threads;

using Classifier = attune::Sequential<
    attune::Embedding<kWords>, attune::LearnedPositions<attune::PositionShape{.seq_len = 18, .d_model = 4}>,
    EncoderOf<18>, attune::LayerScale<attune::ScaleShape{18, 4}>,
    attune::ClassToken<attune::TokenShape{18, 4}>, EncoderOf<19>, Pool<19>, Projection<1, 4, 5>>;
using LongClassifier = attune::Sequential<Projection<70, 5, 4>, EncoderOf<70>, Pool<70>, Projection<1, 4, 5>>;
Mixed::Parameters mixed_base;
using AdaptedMixed =
    attune::Adapted<Mixed, mixed_base,
                    attune::LowRank{.rank = 2, .roles = attune::Role::kEverything, .biases_and_norms = true}>;

// Four steps of a crew and of a Trainer, one of them refused, have the same states. Each goes on from the
// other's.
template <class Members, class Model, class Loss = attune::MeanSquaredError, class Plan = attune::BySequence,
          int batch = kBatch, class Optimizer = attune::Sgd<>, class Masks = attune::NoMask>
void expect_bits_of_a_trainer(const Masks& masks = {}, int not_finite = -1) {
  using Trainer = attune::Trainer<Model, Loss, Optimizer, batch, Plan>;
  using Shared = attune::CrewTrainer<Members, Model, Loss, Optimizer, batch, Plan>;
  Members crew;
  const auto expected = std::make_unique<Trainer>(), between = std::make_unique<Trainer>();
  const auto trainer = std::make_unique<Shared>();
  expected->initialize(attune::XavierUniform{}, attune::Rng{42});
  trainer->initialize(attune::XavierUniform{}, attune::Rng{42});
  for (std::uint64_t step = 0; step < 4; ++step) {
    const auto data = std::make_unique<check::Batch<Trainer>>(step);
    if constexpr (requires { data->x.values; }) {
      if (step == 1 && not_finite >= 0)
        data->x.values[data->x.size / batch * not_finite] = check::kNan<float>;
    }
    const typename Optimizer::Options options{.learning_rate = 1.0f};
    const attune::GradientClipping clipping{100.0f};
    const auto one = expected->step(data->x, data->target, options, clipping, masks);
    const auto all = trainer->step(crew, data->x, data->target, options, clipping, masks);
    ASSERT_EQ(all.status, one.status);
    EXPECT_EQ(one.status, step == 1 && not_finite >= 0 ? Status::kNotFinite : Status::kOk);
    EXPECT_TRUE(check::same_bits(all.loss, one.loss));
    EXPECT_TRUE(check::same_bits(all.gradient_norm, one.gradient_norm));
    ASSERT_EQ(std::memcmp(&trainer->state(), &expected->state(), sizeof expected->state()), 0)
        << Members::kMembers << " members, step " << step;
    if (step == 1) {
      ASSERT_EQ(between->resume(trainer->state()), Status::kOk);
      ASSERT_EQ(trainer->resume(expected->state()), Status::kOk);
      ASSERT_EQ(expected->resume(between->state()), Status::kOk);
    }
  }
}
template <class Model, class Loss = attune::MeanSquaredError, class Plan = attune::BySequence,
          class Masks = attune::NoMask>
void expect_bits_on_crews(const Masks& masks = {}, int not_finite = -1) {
  expect_bits_of_a_trainer<Threads<2>, Model, Loss, Plan>(masks, not_finite);
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_a_trainer<attune::OneCore, Model, Loss, Plan>(masks, not_finite);
    expect_bits_of_a_trainer<Threads<3>, Model, Loss, Plan>(masks, not_finite);
  }
}

}  // namespace

TEST(CrewTrainer, any_number_of_members_has_the_bits_of_a_trainer) {
  expect_bits_of_a_trainer<attune::OneCore, Mixed, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<Threads<1>, Mixed, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<Threads<2>, Mixed, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<Threads<3>, Mixed, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<Threads<4>, Mixed, attune::CrossEntropy<>>();
}

TEST(CrewTrainer, layers_that_add_once_have_the_bits_of_a_trainer) {
  static_assert(attune::detail::AddsOnce<Classifier>);
  expect_bits_on_crews<Classifier, attune::CrossEntropy<>>();
  expect_bits_on_crews<Classifier, attune::SemiSupervised>();
}

TEST(CrewTrainer, layers_that_add_more_than_once_have_the_bits_of_a_trainer) {
  static_assert(!attune::detail::AddsOnce<Convolution> && !attune::detail::AddsOnce<TiedModel>);
  expect_bits_on_crews<TiedModel, attune::CrossEntropy<>>();
  expect_bits_on_crews<attune::Conv2d<attune::Conv2dShape{
      .height = 4, .width = 5, .d_in = 5, .d_out = 7, .kernel_height = 2, .kernel_width = 2}>>();
  expect_bits_on_crews<attune::Repeat<2, attune::Residual<Convolution>>>();
  expect_bits_on_crews<attune::Linear<attune::LinearShape{attune::kernels::kDepthBlock + 8, 3, 2}>>();
}

TEST(CrewTrainer, own_layers_have_the_bits_of_a_trainer) {
  expect_bits_on_crews<OwnModel, attune::CrossEntropy<>>();
  expect_bits_on_crews<SharedLinear>();
  expect_bits_on_crews<Backwards<18, 4>>();
}

TEST(CrewTrainer, low_rank_and_integers_have_the_bits_of_a_trainer) {
  attune::Rng rng(1);
  check::fill_set(mixed_base, rng);
  expect_bits_on_crews<AdaptedMixed, attune::CrossEntropy<>>();
  expect_bits_on_crews<LongClassifier, attune::CrossEntropy<>, attune::Int8Training>();
}

TEST(CrewTrainer, dropout_masks_and_lengths_have_the_bits_of_a_trainer) {
  expect_bits_on_crews<Dropping, attune::CrossEntropy<>>(attune::CausalMask{});
  std::array<attune::SequenceLength<18>, kBatch> lengths;
  for (int i = 0; i < kBatch; ++i)
    ASSERT_EQ(lengths[static_cast<std::size_t>(i)].set_length(18 - 3 * i), Status::kOk);
  expect_bits_on_crews<Dropping, attune::CrossEntropy<>>(lengths);
  expect_bits_on_crews<OwnModel, attune::CrossEntropy<>>(lengths);
}

TEST(CrewTrainer, a_refused_sequence_changes_nothing) {
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    expect_bits_on_crews<Dropping, attune::CrossEntropy<>>(attune::NoMask{}, sequence);
  }
}

TEST(CrewTrainer, every_optimizer_has_the_bits_of_a_trainer) {
  expect_bits_of_a_trainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::BySequence, kBatch,
                           attune::AdamW>();
  expect_bits_of_a_trainer<
      Threads<2>, Mixed, attune::CrossEntropy<>, attune::BySequence, kBatch,
      attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8Stochastic}>>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_a_trainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::BySequence, kBatch,
                             attune::Adafactor<>>();
    expect_bits_of_a_trainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::BySequence, kBatch,
                             attune::StochasticBfloat16<attune::AdamW>>();
  }
}

TEST(CrewTrainer, members_share_the_sequences_of_a_small_batch) {
  using Shared = attune::CrewTrainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::Sgd<>, 1>;
  using Alone = attune::CrewTrainer<attune::OneCore, Mixed, attune::CrossEntropy<>, attune::Sgd<>, 1>;
  static_assert(Shared::memory().tape == Alone::memory().tape);
  static_assert(Shared::memory().scratch == 2 * Alone::memory().scratch);
  expect_bits_of_a_trainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::BySequence, 1>();
  expect_bits_of_a_trainer<Threads<3>, Mixed, attune::CrossEntropy<>, attune::BySequence, 2>();
  expect_bits_of_a_trainer<Threads<2>, SharedLinear, attune::MeanSquaredError, attune::BySequence, 1>();
  expect_bits_of_a_trainer<Threads<3>, Dropping, attune::CrossEntropy<>, attune::BySequence, 2>();
}

namespace {

template <class Members, class Model, int batch>
void expect_predictions() {
  using Shared = attune::CrewTrainer<Members, Model, attune::CrossEntropy<>, attune::AdamW, batch>;
  using Output = typename Model::Output;
  Members crew;
  const auto trainer = std::make_unique<Shared>();
  const auto expected = std::make_unique<typename Shared::PerSequence>();
  const auto data = std::make_unique<check::Batch<Shared>>(3);
  static attune::Tensor<float, batch * Output::rows, Output::cols> outputs;
  EXPECT_EQ(trainer->predict_batch(crew, data->x, outputs), Status::kNotInitialized);
  EXPECT_EQ(trainer->step(crew, data->x, data->target).status, Status::kNotInitialized);
  trainer->initialize(attune::XavierUniform{}, attune::Rng{5});
  expected->initialize(attune::XavierUniform{}, attune::Rng{5});
  EXPECT_EQ(trainer->predict_batch(crew, data->x, outputs), Status::kOk);
  for (int s = 0; s < batch; ++s) {
    const auto x = attune::view(data->x).template rows_at<Model::Input::rows>(s * Model::Input::rows);
    Output y, wanted;
    EXPECT_EQ(trainer->predict(crew, x, y), Status::kOk);
    EXPECT_EQ(expected->predict(x, wanted), Status::kOk);
    EXPECT_TRUE(check::same_bits(y, wanted));
    EXPECT_EQ(std::memcmp(&outputs.values[s * Output::size], &wanted, sizeof wanted), 0);
  }
  data->x.values[data->x.size - 1] = check::kNan<float>;
  EXPECT_EQ(trainer->predict_batch(crew, data->x, outputs), Status::kNotFinite);
}

}  // namespace

TEST(CrewTrainer, predicts_one_or_a_batch_as_a_trainer) {
  expect_predictions<Threads<2>, Mixed, 3>();
  expect_predictions<Threads<2>, Mixed, 1>();
  expect_predictions<Threads<2>, Dropping, 3>();
}
