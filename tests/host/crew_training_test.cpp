// Training on a crew of threads, beside tests/zoo. With a learning rate of 1, a gradient that differs
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

template <class Members, class Model, class Loss = attune::MeanSquaredError, int batch = kBatch>
void expect_bits_of_a_trainer(int not_finite = -1) {
  Members crew;
  const auto trainer = std::make_unique<attune::CrewTrainer<Members, Model, Loss, attune::Sgd<>, batch>>();
  constexpr attune::GradientClipping kClipping{100.0f};
  const attune::NoMask mask;
  const auto step = [&](const auto& data) {
    return trainer->step(crew, data.x, data.target, kOptions, kClipping, mask);
  };
  SCOPED_TRACE(Members::kMembers);
  parallel_layers::expect_bits_of_a_trainer<attune::Trainer<Model, Loss, attune::Sgd<>, batch>>(
      *trainer, step, kOptions, kClipping, mask, kNumbers<Model> * not_finite);
}
template <class Model, class Loss = attune::MeanSquaredError>
void expect_bits_on_crews(int not_finite = -1) {
  expect_bits_of_a_trainer<Threads<2>, Model, Loss>(not_finite);
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_a_trainer<attune::OneCore, Model, Loss>(not_finite);
    expect_bits_of_a_trainer<Threads<3>, Model, Loss>(not_finite);
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

TEST(CrewTrainer, layers_that_add_more_than_once_have_the_bits_of_a_trainer) {
  static_assert(!attune::detail::AddsOnce<Mixed> && attune::detail::AddsOnce<EncoderOf<18>>);
  expect_bits_on_crews<attune::Linear<attune::LinearShape{attune::kernels::kDepthBlock + 8, 3, 2}>>();
  expect_bits_on_crews<SharedLinear>();
  expect_bits_on_crews<Backwards<18, 4>>();
}

TEST(CrewTrainer, a_refused_sequence_changes_nothing) {
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    expect_bits_on_crews<Dropping, attune::CrossEntropy<>>(sequence);
  }
}

TEST(CrewTrainer, members_share_the_sequences_of_a_small_batch) {
  using Shared = attune::CrewTrainer<Threads<2>, Mixed, attune::CrossEntropy<>, attune::Sgd<>, 1>;
  using Alone = attune::CrewTrainer<attune::OneCore, Mixed, attune::CrossEntropy<>, attune::Sgd<>, 1>;
  static_assert(Shared::memory().tape == Alone::memory().tape);
  static_assert(Shared::memory().scratch == 2 * Alone::memory().scratch);
  expect_bits_of_a_trainer<Threads<3>, Mixed, attune::CrossEntropy<>, 2>();
  expect_bits_of_a_trainer<Threads<2>, SharedLinear, attune::MeanSquaredError, 1>();
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
