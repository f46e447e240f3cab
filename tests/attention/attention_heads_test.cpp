// Against the definition: multi_head_attention_test.cpp.
#include <attune/attention/attention_heads.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kDropped{.seq_len = 4, .d_model = 8, .num_heads = 2, .dropout = 0.5};

// More queries than inference has weights of at a time, and a rest.
constexpr attune::AttentionShape kManyQueries{.seq_len = 69, .d_model = 8, .num_heads = 2, .kv_len = 21};
using ManyQueries = attune::MultiHeadAttention<kManyQueries>;
// Blocks are as long as each other where keys are transposed for them; elsewhere all but the last are 32.
constexpr int kAtOnce = attune::kernels::kCopiesTransposed<float> ? 24 : 32;
static_assert(ManyQueries::kQueriesAtOnce == kAtOnce);
static_assert(sizeof(ManyQueries::InferenceScratch::weights) == kAtOnce * 21 * sizeof(float));

template <class Mask>
void expect_inference_as_training(const Mask& mask) {
  static ManyQueries::Parameters parameters;
  static ManyQueries::Input query;
  static ManyQueries::KeyInput key;
  static ManyQueries::Output inferred, trained;
  static ManyQueries::Tape tape;
  static ManyQueries::Scratch scratch;
  static ManyQueries::InferenceScratch inference_scratch;
  attune::Rng rng(6);
  check::fill_set(parameters, rng);
  check::fill(query, rng);
  check::fill(key, rng);
  attune::infer<ManyQueries>(parameters, query, key, key, inferred, inference_scratch, mask);
  attune::forward<ManyQueries>(parameters, query, key, key, trained, tape, scratch, mask);
  EXPECT_TRUE(check::same_bits(inferred, trained));
}

}  // namespace

TEST(AttentionHeads, drop_weights_in_training_alone_and_scale_up_the_rest) {
  using Layer = attune::MultiHeadAttention<kDropped>;
  using Plain = attune::MultiHeadAttention<attune::AttentionShape{4, 8, 2}>;
  static Layer::Parameters parameters;
  static Plain::Parameters plain;
  static Layer::Tape tape;
  static Layer::Scratch scratch;
  static Layer::InferenceScratch inference;
  static Plain::InferenceScratch plain_inference;
  Layer::Input x, y, expected;
  attune::Rng rng(10);
  check::fill_set(parameters, rng);
  attune::for_each_tensor([](const attune::TensorPath&, auto& to, const auto& from) { to = from; }, plain,
                          parameters);
  check::fill(x, rng);
  Layer::forward(parameters, x, y, inference);
  Plain::forward(plain, x, expected, plain_inference);
  EXPECT_TRUE(check::same_bits(y, expected));

  attune::draw_seeds(tape, rng);
  Layer::forward(parameters, x, y, tape, scratch);
  EXPECT_FALSE(check::same_bits(y, expected));
  // The context of a head is P with some weights doubled, the others zero, times V.
  attune::Rng mask = Layer::WeightDropout::generator(tape.dropout);
  int dropped = 0;
  for (int head = 0; head < 2; ++head) {
    attune::Tensor<float, 4, 4> weights;
    Layer::WeightDropout::drop(16, mask, tape.head_weights(head).data, weights.data());
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const float weight = tape.head_weights(head)(i, j);
        dropped += weights(i, j) == 0;
        EXPECT_TRUE(weights(i, j) == 0 || weights(i, j) == 2 * weight);
      }
      for (int j = 0; j < 4; ++j) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) sum += weights(i, k) * tape.value(k, head * 4 + j);
        EXPECT_NEAR(tape.outputs(i, head * 4 + j), sum, 1e-6);
      }
    }
  }
  EXPECT_GT(dropped, 4);
  EXPECT_LT(dropped, 28);
}

TEST(AttentionHeads, drop_others_in_the_next_sequence) {
  using Layer = attune::MultiHeadAttention<kDropped>;
  static Layer::Parameters parameters, gradients;
  static Layer::Tape tape;
  static Layer::Scratch scratch;
  Layer::Input x, y, again, dx;
  attune::Rng rng(11);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  attune::draw_seeds(tape, rng);
  Layer::forward(parameters, x, y, tape, scratch);
  Layer::forward(parameters, x, again, tape, scratch);
  EXPECT_TRUE(check::same_bits(y, again));
  Layer::backward(parameters, x, tape, y, dx, gradients, scratch);
  Layer::forward(parameters, x, again, tape, scratch);
  EXPECT_FALSE(check::same_bits(y, again));
}

TEST(AttentionHeads, have_the_bits_of_training_by_blocks_of_queries) {
  expect_inference_as_training(attune::NoMask{});
  expect_inference_as_training(attune::CausalMask{.offset = -40});
  attune::KeyPaddingMask<21> padding;
  ASSERT_EQ(padding.set_length(17), attune::Status::kOk);
  expect_inference_as_training(attune::CausalMask{.offset = -10} && padding);
  static attune::Tensor<float, 69, 21> added;
  attune::Rng rng(7);
  check::fill(added, rng, -3, 3);
  expect_inference_as_training(attune::AdditiveMask(added));
}
