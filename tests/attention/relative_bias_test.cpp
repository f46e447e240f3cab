// Trained biases by relative position. Values: vectors of PyTorch. Gradients: layer_gradients_test.cpp.
#include <attune/attention/relative_bias.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/models/frozen.hpp>
#include <attune/training/check_gradients.hpp>

#include "check.hpp"

namespace {

using attune::AttentionShape;
using attune::RelativeBias;
using attune::RelativePositions;

constexpr int kTokens = 6, kWidth = 8, kHeads = 2;
constexpr AttentionShape kPlain{.seq_len = kTokens, .d_model = kWidth, .num_heads = kHeads};
constexpr RelativeBias kGrid{.kind = RelativePositions::kGrid, .rows = 2, .cols = 3};
constexpr AttentionShape with(RelativeBias bias, bool keep_weights = true) {
  AttentionShape shape = kPlain;
  shape.relative_bias = bias;
  shape.keep_weights = keep_weights;
  return shape;
}

template <AttentionShape shape>
struct Pass {
  using Layer = attune::MultiHeadAttention<shape>;
  typename Layer::Parameters parameters, gradients{};
  typename Layer::Input x, dx;
  typename Layer::Output y, dy, inferred;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  Pass() {
    attune::Rng rng(5);
    check::fill_set(parameters, rng);
    check::fill(x, rng);
    check::fill(dy, rng);
  }
  void operator()(const auto& mask) {
    attune::infer<Layer>(parameters, x, inferred, inference, mask);
    attune::forward<Layer>(parameters, x, y, tape, scratch, mask);
    attune::backward<Layer>(parameters, x, tape, dy, dx, gradients, scratch, mask);
    EXPECT_TRUE(check::same_bits(inferred, y));
  }
};

}  // namespace

TEST(RelativeBias, is_the_additive_mask_of_its_entries) {
  static Pass<with(kGrid)> run;
  static Pass<kPlain> plain;
  plain.parameters.query = run.parameters.query;
  plain.parameters.key = run.parameters.key;
  plain.parameters.value = run.parameters.value;
  plain.parameters.output = run.parameters.output;
  plain.x = run.x;
  plain.dy = run.dy;
  static attune::Tensor<float, kHeads * kTokens, kTokens> bias;
  for (int head = 0; head < kHeads; ++head) {
    for (int query = 0; query < kTokens; ++query) {
      for (int key = 0; key < kTokens; ++key) {
        bias(head * kTokens + query, key) =
            run.parameters.relative.relative_bias(head, attune::detail::relative_entry<kGrid>(query, key));
      }
    }
  }
  run(attune::CausalMask{});
  plain(attune::CausalMask{} && attune::additive_mask_per_head<kHeads>(bias));
  EXPECT_TRUE(check::same_bits(run.y, plain.y));
  EXPECT_TRUE(check::same_bits(run.dx, plain.dx));
  EXPECT_EQ(std::memcmp(&run.gradients, &plain.gradients, sizeof plain.gradients), 0);
}

TEST(RelativeBias, adds_once_to_each_gradient) {
  const auto expect = []<AttentionShape shape>() {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {  // one rounding may hide another
      const attune::GradientCheck check =
          attune::check_gradients<attune::MultiHeadAttention<shape, double>>({.seed = seed});
      EXPECT_FALSE(check.adds_again) << seed;
      EXPECT_LT(check.error, 1e-7);
    }
  };
  expect.operator()<with(kGrid)>();
  expect.operator()<with(kGrid, false)>();
  expect.operator()<with({.kind = RelativePositions::kCausalBuckets, .max_distance = 5, .buckets = 4})>();
}

TEST(RelativeBias, ignores_hidden_tokens_even_nan) {
  static Pass<with(kGrid)> run;
  attune::KeyPaddingMask<kTokens> keys;
  attune::QueryPaddingMask<kTokens> queries;
  ASSERT_EQ(keys.set_length(4), attune::Status::kOk);
  ASSERT_EQ(queries.set_length(4), attune::Status::kOk);
  for (int token = 4; token < kTokens; ++token) {
    for (int j = 0; j < kWidth; ++j) run.x(token, j) = check::kNan<float>;
  }
  for (int token = 4; token < kTokens; ++token) {
    for (int j = 0; j < kWidth; ++j) run.dy(token, j) = 0;
  }
  attune::forward<decltype(run)::Layer>(run.parameters, run.x, run.y, run.tape, run.scratch, keys && queries);
  attune::backward<decltype(run)::Layer>(run.parameters, run.x, run.tape, run.dy, run.dx, run.gradients,
                                         run.scratch, keys && queries);
  for (const float each : run.gradients.relative.relative_bias.values) EXPECT_TRUE(each - each == 0);
  // Offsets of two rows and one column apart, between tokens 0 … 3, and others that only padding has.
  EXPECT_NE(run.gradients.relative.relative_bias(0, attune::detail::relative_entry<kGrid>(0, 3)), 0.0f);
  EXPECT_EQ(run.gradients.relative.relative_bias(0, attune::detail::relative_entry<kGrid>(0, 5)), 0.0f);
}

TEST(RelativeBias, begins_at_zero_and_takes_a_table_and_its_sums) {
  using Layer = attune::MultiHeadAttention<with(kGrid)>;
  using Plain = attune::MultiHeadAttention<kPlain>;
  constexpr std::size_t kTable = sizeof(float) * kHeads * 15;
  static_assert(sizeof(Layer::Parameters) == sizeof(Plain::Parameters) + kTable);
  static_assert(sizeof(Layer::Tape) == sizeof(Plain::Tape));
  static_assert(sizeof(Layer::Scratch) == sizeof(Plain::Scratch) + kTable);
  static_assert(sizeof(Layer::InferenceScratch) == sizeof(Plain::InferenceScratch));
  static_assert(!attune::kMasks<attune::detail::RelativeBiasMask<kGrid, float>>);

  static Layer::Parameters parameters;
  attune::Rng rng(1), same(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  for (const float each : parameters.relative.relative_bias.values) EXPECT_EQ(each, 0.0f);
  static Plain::Parameters plain;
  attune::initialize(plain, attune::XavierUniform{}, same);
  EXPECT_EQ(std::memcmp(&parameters, &plain, sizeof plain), 0);
}

TEST(RelativeBias, is_trained_with_biases) {
  using Layer = attune::MultiHeadAttention<with(kGrid)>;
  static constexpr Layer::Parameters kConstants{};
  using Trained = attune::BiasesAndNorms<Layer, kConstants>;
  static_assert(sizeof(Trained::Parameters) == sizeof(float) * (3 * kWidth + kHeads * 15));
  using Plain = attune::MultiHeadAttention<kPlain>;
  static_assert(sizeof(Layer::ScratchOf<Layer::ParametersOf<attune::Untrained>>) ==
                sizeof(Plain::ScratchOf<Plain::ParametersOf<attune::Untrained>>));
}
