// Every layer on several threads. With a learning rate of 1, a gradient that differs in its last bit changes
// the parameters.
#include <attune/attune.hpp>
#include <attune/host/parallel_trainer.hpp>

#include <limits>
#include <memory>

#include "host/parallel_layers.hpp"

using namespace parallel_layers;

namespace {

using attune::Status;

// Four steps on 1 to 4 threads: the states of a Trainer, which takes over in between.
template <class Model, class Loss = attune::MeanSquaredError, class Plan = attune::BySequence,
          class Masks = attune::NoMask>
void expect_bits_of_a_trainer(const Masks& masks = {}, int not_finite = -1) {
  using Trainer = attune::Trainer<Model, Loss, attune::Sgd<>, kBatch, Plan>;
  using Parallel = attune::host::ParallelTrainer<Model, Loss, attune::Sgd<>, kBatch, Plan>;
  const auto expected = std::make_unique<Trainer>(), from_parallel = std::make_unique<Trainer>();
  for (const int threads : {1, 2, 3, 4}) {
    Parallel parallel({.threads = threads, .gradient_bytes = threads % 2 == 0 ? 0 : std::size_t{1} << 20});
    expected->initialize(attune::XavierUniform{}, attune::Rng{42});
    parallel.initialize(attune::XavierUniform{}, attune::Rng{42});
    for (std::uint64_t step = 0; step < 4; ++step) {
      auto data = std::make_unique<check::Batch<Trainer>>(step);
      if constexpr (requires { data->x.values; }) {
        if (step == 1 && not_finite >= 0) {
          data->x.values[static_cast<std::size_t>(data->x.size / kBatch * not_finite)] = check::kNan<float>;
        }
      }
      const auto one = expected->step(data->x, data->target, kOptions, attune::NoClipping{}, masks);
      const auto all = parallel.step(data->x, data->target, kOptions, attune::NoClipping{}, masks);
      ASSERT_EQ(all.status, one.status);
      EXPECT_EQ(one.status, step == 1 && not_finite >= 0 ? Status::kNotFinite : Status::kOk);
      EXPECT_TRUE(check::same_bits(all.loss, one.loss));
      ASSERT_EQ(std::memcmp(&parallel.state(), &expected->state(), sizeof expected->state()), 0)
          << threads << " threads, step " << step;
      if (step == 1) {  // each goes on from the other's state
        ASSERT_EQ(from_parallel->resume(parallel.state()), Status::kOk);
        ASSERT_EQ(parallel.resume(expected->state()), Status::kOk);
        ASSERT_EQ(expected->resume(from_parallel->state()), Status::kOk);
      }
    }
  }
}

}  // namespace

TEST(ParallelLayers, own_layers_have_the_bits_of_a_trainer) {
  expect_bits_of_a_trainer<PRelu<18, 4>>();
  expect_bits_of_a_trainer<DepthwiseConvolution<18, 4, 3>>();
  expect_bits_of_a_trainer<OwnModel, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<SharedLinear>();
  expect_bits_of_a_trainer<Backwards<18, 4>>();
}

TEST(ParallelLayers, layers_made_of_others_have_the_bits_of_a_trainer) {
  static_assert(!attune::detail::AddsOnce<Mixed>);
  expect_bits_of_a_trainer<Mixed, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<attune::Repeat<2, attune::Residual<Convolution>>>();
  expect_bits_of_a_trainer<attune::Checkpointed<Mixed>, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<attune::QuantizedTape<Mixed>, attune::CrossEntropy<>>();
  expect_bits_of_a_trainer<Translator, attune::CrossEntropy<>>();
}

TEST(ParallelLayers, a_sequence_that_is_not_finite_refuses_the_step_of_a_trainer) {
  for (int sequence = 0; sequence < kBatch; ++sequence) {
    expect_bits_of_a_trainer<Dropping, attune::CrossEntropy<>>(attune::NoMask{}, sequence);
  }
}

// Threads' memory lies side by side. AddressSanitizer watches the end of dy.
TEST(ParallelLayers, a_convolution_reads_no_row_beyond_its_gradient) {
  const auto parameters = std::make_unique<Convolution::Parameters>();
  const auto gradients = std::make_unique<Convolution::Parameters>();
  const auto x = std::make_unique<Convolution::Input>(), dx = std::make_unique<Convolution::Input>();
  const auto dy = std::make_unique<Convolution::Output>();
  const auto scratch = std::make_unique<Convolution::Scratch>();
  attune::Rng rng(1);
  check::fill_set(*parameters, rng);
  check::fill(*x, rng);
  check::fill(*dy, rng);
  Convolution::Tape tape;
  attune::backward<Convolution>(*parameters, *x, tape, *dy, *dx, *gradients, *scratch);
  EXPECT_NE(gradients->weight(0, 0), 0.0f);
}

#if !ATTUNE_TEST_QUICK  // compiling these takes long; the zoo has threads, too

TEST(ParallelLayers, sums_over_more_tokens_than_a_block_have_the_bits_of_a_trainer) {
  constexpr int kLong = attune::kernels::kDepthBlock + 8;
  expect_bits_of_a_trainer<attune::Linear<attune::LinearShape{kLong, 3, 2}>>();
  expect_bits_of_a_trainer<attune::LayerNorm<attune::NormShape{kLong, 4}>>();
  expect_bits_of_a_trainer<attune::RmsNorm<attune::NormShape{kLong, 4}>>();
  expect_bits_of_a_trainer<attune::LayerScale<attune::ScaleShape{.rows = kLong, .d_model = 3}>>();
  expect_bits_of_a_trainer<attune::TokenType<attune::TokenTypeShape{.seq_len = kLong, .d_model = 3}>>();
  expect_bits_of_a_trainer<attune::FeedForward<attune::FeedForwardShape{kLong, 4, 6}>>();
  expect_bits_of_a_trainer<attune::MultiHeadAttention<attune::AttentionShape{
      .seq_len = kLong, .d_model = 4, .num_heads = 2, .keep_weights = false}>>();
  expect_bits_of_a_trainer<attune::Sequential<
      attune::Embedding<attune::EmbeddingShape{kLong, 5, 4}>,
      attune::EncoderLayer<attune::EncoderLayerShape{
          .attention = {.seq_len = kLong, .d_model = 4, .num_heads = 1, .keep_weights = false}, .d_ff = 4}>,
      attune::Pooling<attune::PoolingShape{kLong, 4}>>>();
}

// Threads share a sequence of such a size. Own layers are then one stage in backward.
TEST(ParallelLayers, a_large_sequence_on_all_threads_has_the_bits_of_a_trainer) {
  using Large = attune::Sequential<
      attune::Conv1d<attune::Conv1dShape{.seq_len = 130, .d_in = 3, .d_out = 8, .kernel = 3, .padding = 1}>,
      Backwards<130, 8>, PRelu<130, 8>,
      attune::EncoderLayer<attune::EncoderLayerShape{
          .attention = {.seq_len = 130, .d_model = 8, .num_heads = 4}, .d_ff = 8}>,
      attune::Pooling<attune::PoolingShape{130, 8}>>;
  static_assert(sizeof(Large::Tape) > 256 * 1024);
  using Trainer = attune::Trainer<Large, attune::MeanSquaredError, attune::Sgd<>, 2>;
  const auto expected = std::make_unique<Trainer>();
  for (const int threads : {1, 2, 3, 4}) {
    attune::host::ParallelTrainer<Large, attune::MeanSquaredError, attune::Sgd<>, 2> shared(
        {.threads = threads});
    expected->initialize(attune::XavierUniform{}, attune::Rng{42});
    shared.initialize(attune::XavierUniform{}, attune::Rng{42});
    for (std::uint64_t step = 0; step < 2; ++step) {
      const check::Batch<Trainer> data(step);
      const attune::CausalMask mask;
      ASSERT_TRUE(expected->step(data.x, data.target, kOptions, attune::NoClipping{}, mask).ok());
      ASSERT_TRUE(shared.step(data.x, data.target, kOptions, attune::NoClipping{}, mask).ok());
      EXPECT_EQ(std::memcmp(&shared.state(), &expected->state(), sizeof expected->state()), 0);
    }
  }
}

#endif
