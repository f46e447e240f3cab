// Layers on several threads, beside those of tests/zoo. With a learning rate of 1, a gradient that differs in
// its last bit changes the parameters.
#include <attune/attune.hpp>
#include <attune/host/parallel_trainer.hpp>

#include <limits>
#include <memory>

#include "host/parallel_layers.hpp"

using namespace parallel_layers;

namespace {

// On 1 to 4 threads.
template <class Model, class Loss = attune::MeanSquaredError, int batch = kBatch, class Mask = attune::NoMask>
void expect_bits_of_a_trainer(const Mask& mask = {}, int not_finite = -1) {
  constexpr attune::NoClipping kClipping;
  for (const int threads : {1, 2, 3, 4}) {
    attune::host::ParallelTrainer<Model, Loss, attune::Sgd<>, batch> parallel(
        {.threads = threads, .gradient_bytes = threads % 2 == 0 ? 0 : std::size_t{1} << 20});
    const auto step = [&](const auto& data) {
      return parallel.step(data.x, data.target, kOptions, kClipping, mask);
    };
    parallel_layers::expect_bits_of_a_trainer<attune::Trainer<Model, Loss, attune::Sgd<>, batch>>(
        parallel, step, kOptions, kClipping, mask, kNumbers<Model> * not_finite);
  }
}

}  // namespace

TEST(ParallelLayers, own_layers_have_the_bits_of_a_trainer) {
  expect_bits_of_a_trainer<SharedLinear>();
  expect_bits_of_a_trainer<Backwards<18, 4>>();
}

TEST(ParallelLayers, layers_made_of_others_have_the_bits_of_a_trainer) {
  static_assert(!attune::detail::AddsOnce<Mixed>);
  expect_bits_of_a_trainer<Mixed, attune::CrossEntropy<>>();
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

// Threads share a sequence of such a size. Own layers are then one stage in backward.
TEST(ParallelLayers, a_large_sequence_on_all_threads_has_the_bits_of_a_trainer) {
  using Large = attune::Sequential<
      attune::Conv1d<attune::Conv1dShape{.seq_len = 130, .d_in = 3, .d_out = 8, .kernel = 3, .padding = 1}>,
      Backwards<130, 8>, PRelu<130, 8>,
      attune::EncoderLayer<attune::EncoderLayerShape{
          .attention = {.seq_len = 130, .d_model = 8, .num_heads = 4}, .d_ff = 8}>,
      attune::Pooling<attune::PoolingShape{130, 8}>>;
  static_assert(sizeof(Large::Tape) > 256 * 1024);
  expect_bits_of_a_trainer<Large, attune::MeanSquaredError, 2>(attune::CausalMask{});
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

#endif
