// Weights that are computed once more have the bits of weights that are kept. Beside constant weights:
// tests/zoo.
#include <attune/attention/recomputed_attention.hpp>

#include <attune/models/decoder_layer.hpp>
#include <attune/training/trainer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "problem.hpp"

namespace {

using attune::AttentionShape;
using attune::NoMask;
using attune::Tensor;
using check::kInfinity;
using check::kNan;

constexpr AttentionShape recomputed(AttentionShape shape) {
  shape.keep_weights = false;
  return shape;
}

// Everything that one layer reads and writes.
template <AttentionShape shape, class Scalar>
struct Problem : check::AttentionProblem<shape, Scalar> {
  void run(const auto& mask) {
    this->forward(mask);
    this->backward(mask);
  }
};

// One of each, whatever masks it is used with: boards have little RAM.
template <AttentionShape shape, class Scalar>
Problem<shape, Scalar>& problem() {
  static Problem<shape, Scalar> one;
  return one;
}

// Two sequences: outputs and all gradients. `spoil` changes each problem behind its filling.
template <AttentionShape shape, class Scalar = float, class Mask>
void expect_bits_of_keeping(const Mask& mask, const auto& spoil) {
  auto& kept = problem<shape, Scalar>();
  auto& again = problem<recomputed(shape), Scalar>();
  kept.draw(7);
  again.draw(7);
  spoil(kept);
  spoil(again);
  for (int sequence = 0; sequence < 2; ++sequence) {
    kept.run(mask);
    again.run(mask);
    EXPECT_TRUE(check::same_bits(kept.y, again.y));
    EXPECT_TRUE(check::same_bits(kept.d_query, again.d_query));
    EXPECT_TRUE(check::same_bits(kept.d_key, again.d_key));
    EXPECT_TRUE(check::same_bits(kept.d_value, again.d_value));
    EXPECT_EQ(std::memcmp(&kept.gradients, &again.gradients, sizeof kept.gradients), 0);
  }
}
template <AttentionShape shape, class Scalar = float, class Mask = NoMask>
void expect_bits_of_keeping(const Mask& mask = {}) {
  expect_bits_of_keeping<shape, Scalar>(mask, [](auto&) {});
}

constexpr AttentionShape kSelf{.seq_len = 5, .d_model = 6, .num_heads = 3};
constexpr AttentionShape kCross = check::kAllSizesDiffer;
// Every option at once.
constexpr AttentionShape kOptions =
    check::with_every_option({.seq_len = 6,
                              .d_model = 8,
                              .num_heads = 4,
                              .num_kv_heads = 2,
                              .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare},
                             {.left = 3, .right = 2, .sinks = 1});
constexpr AttentionShape kDropping{.seq_len = 37, .d_model = 4, .num_heads = 2, .dropout = 0.3};
// More queries than a block of a product has terms: one block and a rest, two and a rest.
constexpr AttentionShape kLong{.seq_len = 200, .d_model = 4, .num_heads = 2, .kv_len = 7};
constexpr AttentionShape kLonger{.seq_len = 400, .d_model = 4, .num_heads = 2, .kv_len = 3, .d_v = 1};

}  // namespace

TEST(RecomputedAttention, has_the_bits_of_keeping_weights_in_every_shape) {
  expect_bits_of_keeping<kSelf>();
  expect_bits_of_keeping<kCross>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_keeping<kCross, double>();
    expect_bits_of_keeping<AttentionShape{.seq_len = 1, .d_model = 1, .num_heads = 1}>();
    expect_bits_of_keeping<AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}>();
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 70, .d_model = 3, .num_heads = 1, .kv_len = 9, .d_v = 20}>();
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 9, .d_model = 4, .num_heads = 1, .kv_len = 1, .d_v = 8}>();
  }
}

TEST(RecomputedAttention, adds_up_blocks_of_queries_as_products_do) {
  static_assert(kLong.seq_len > attune::kernels::kDepthBlock &&
                kLonger.seq_len > 2 * attune::kernels::kDepthBlock);
  expect_bits_of_keeping<kLong>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_keeping<kLonger>();
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 200, .d_model = 4, .num_heads = 4, .num_kv_heads = 2, .kv_len = 7, .d_k = 1}>();
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 200, .d_model = 2, .num_heads = 1, .kv_len = 7, .bias = false, .softcap = 1}>();
    expect_bits_of_keeping<AttentionShape{.seq_len = 384, .d_model = 2, .num_heads = 1, .kv_len = 5}>();
  }
}

TEST(RecomputedAttention, has_the_bits_with_every_scaling_and_with_rotary_positions) {
  using attune::Scaling;
  if constexpr (!check::kQuickBuild) {
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 6, .d_model = 6, .num_heads = 3, .scaling = Scaling::kInverseSqrtDModel}>();
  } else {
    check::leave_case();
  }
  expect_bits_of_keeping<AttentionShape{.seq_len = 6,
                                        .d_model = 8,
                                        .num_heads = 2,
                                        .scaling = Scaling::kInverseFourthRootDkEach,
                                        .rotary_dim = 4}>();
}

TEST(RecomputedAttention, has_the_bits_with_every_option) {
  if constexpr (check::kDepth >= check::kBoard) {
    constexpr AttentionShape kDropped = [] {
      AttentionShape shape = kOptions;
      shape.dropout = 0.3;
      return shape;
    }();
    expect_bits_of_keeping<kDropped>();
  } else {
    check::leave_case();
  }
  attune::KeyPaddingMask<6> keys;
  EXPECT_EQ(keys.set_length(3), attune::Status::kOk);
  expect_bits_of_keeping<kOptions>(attune::CausalMask{} && keys, [](auto& problem) {
    for (int token = 3; token < 6; ++token) problem.key(token, 1) = kNan<float>;
  });
  for (const float each : problem<kOptions, float>().d_query.values) EXPECT_TRUE(each - each == 0);
}

TEST(RecomputedAttention, has_the_same_bits_under_every_mask) {
  expect_bits_of_keeping<kSelf>(attune::CausalMask{});
  attune::KeyPaddingMask<5> keys;
  EXPECT_EQ(keys.set_length(3), attune::Status::kOk);
  attune::QueryPaddingMask<5> queries;  // rows without any key
  EXPECT_EQ(queries.set_length(4), attune::Status::kOk);
  expect_bits_of_keeping<kSelf>(keys);
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_keeping<kSelf, double>(attune::CausalMask{} && keys && queries);
  }
  Tensor<float, 5, 5> bias;
  attune::Rng rng(3);
  check::fill(bias, rng);
  bias(1, 2) = -kInfinity<float>;
  bias(2, 3) = kInfinity<float>;
  expect_bits_of_keeping<kSelf>(attune::AdditiveMask(bias));
  Tensor<float, 15, 5> of_heads;
  check::fill(of_heads, rng);
  if constexpr (!check::kQuickBuild) {
    expect_bits_of_keeping<kSelf>(attune::additive_mask_per_head<3>(of_heads) && attune::CausalMask{});
  } else {
    check::leave_case();
  }
  attune::KeyPaddingMask<7> of_long;
  EXPECT_EQ(of_long.set_length(4), attune::Status::kOk);
  expect_bits_of_keeping<kLong>(of_long);
}

namespace {

constexpr AttentionShape kOfBlocks{.seq_len = 36, .d_model = 4, .num_heads = 1, .kv_len = 75};

// Scores of −∞, which nobody is told of: no key is left out.
template <AttentionShape shape, class Scalar>
struct Hidden {
  Problem<shape, Scalar> problem;
  Tensor<Scalar, shape.seq_len, shape.kv_len> scores;

  void run(const auto& mask) {
    scores.set_zero();
    for (int i = 0; i < shape.seq_len; ++i) mask.template hide<shape.kv_len>(0, i, &scores(i, 0));
    problem.draw(7);
    problem.run(attune::AdditiveMask(scores));
  }
};
template <AttentionShape shape, class Scalar>
Hidden<shape, Scalar>& hidden_keys() {
  static Hidden<shape, Scalar> one;
  return one;
}

// Keys that are left out are no other than keys that are computed and hidden: outputs and all gradients.
template <AttentionShape shape, class Scalar = float, class Mask>
void expect_bits_of_hiding(const Mask& mask) {
  static_assert(attune::detail::LeavesOut<Mask, shape.kv_len>);
  auto& left_out = problem<shape, Scalar>();
  const auto& hidden = hidden_keys<shape, Scalar>().problem;
  left_out.draw(7);
  left_out.run(mask);
  hidden_keys<shape, Scalar>().run(mask);
  EXPECT_TRUE(check::same_bits(left_out.y, hidden.y));
  EXPECT_TRUE(check::same_bits(left_out.d_query, hidden.d_query));
  EXPECT_TRUE(check::same_bits(left_out.d_key, hidden.d_key));
  EXPECT_TRUE(check::same_bits(left_out.d_value, hidden.d_value));
  EXPECT_EQ(std::memcmp(&left_out.gradients, &hidden.gradients, sizeof hidden.gradients), 0);
}

}  // namespace

TEST(RecomputedAttention, keys_that_are_left_out_are_as_keys_that_are_hidden) {
  attune::KeyPaddingMask<75> padding;
  for (const int length : {75, 65, 40, 3, 1}) {
    EXPECT_EQ(padding.set_length(length), attune::Status::kOk);
    expect_bits_of_hiding<recomputed(kOfBlocks)>(padding);
    expect_bits_of_hiding<kOfBlocks>(padding);
  }
  for (const int offset : {0, 5, -40, 80}) {
    expect_bits_of_hiding<recomputed(kOfBlocks)>(attune::CausalMask{offset});
    expect_bits_of_hiding<kOfBlocks>(attune::CausalMask{offset});
  }
  EXPECT_EQ(padding.set_length(50), attune::Status::kOk);
  if constexpr (!check::kQuickBuild) {
    expect_bits_of_hiding<recomputed(kOfBlocks), double>(attune::CausalMask{} && padding);
  } else {
    check::leave_case();
  }
}

#if !ATTUNE_TEST_QUICK && !ATTUNE_TEST_ON_BOARD
TEST(Attention, keys_that_are_left_out_of_several_blocks_of_terms_are_as_keys_that_are_hidden) {
  constexpr AttentionShape kGrouped{
      .seq_len = 230, .d_model = 4, .num_heads = 2, .num_kv_heads = 1, .kv_len = 210};
  for (const int offset : {0, -150}) expect_bits_of_hiding<kGrouped>(attune::CausalMask{offset});
  constexpr AttentionShape kCapped{.seq_len = 40, .d_model = 4, .num_heads = 1, .softcap = 2};
  attune::KeyPaddingMask<210> padding;
  EXPECT_EQ(padding.set_length(195), attune::Status::kOk);
  expect_bits_of_hiding<kGrouped>(padding && attune::CausalMask{60});
  expect_bits_of_hiding<kCapped>(attune::CausalMask{});
}
#endif

TEST(RecomputedAttention, keys_that_are_left_out_may_hold_nan_and_scratch_too) {
  attune::KeyPaddingMask<75> padding;
  EXPECT_EQ(padding.set_length(30), attune::Status::kOk);
  expect_bits_of_keeping<kOfBlocks>(padding, [](auto& problem) {
    std::memset(static_cast<void*>(&problem.scratch), 0xFF, sizeof problem.scratch);
    problem.key(70, 1) = kNan<float>;
    problem.value(70, 0) = kInfinity<float>;
  });
  for (const float each : problem<recomputed(kOfBlocks), float>().d_query.values)
    EXPECT_TRUE(each - each == 0);
}

TEST(RecomputedAttention, padding_that_holds_nan_has_no_influence) {
  attune::KeyPaddingMask<5> keys;
  EXPECT_EQ(keys.set_length(3), attune::Status::kOk);
  const auto poison = [](auto& problem) {
    for (int token = 3; token < 5; ++token) {
      problem.key(token, 1) = kNan<float>;
      problem.value(token, 0) = kInfinity<float>;
    }
  };
  expect_bits_of_keeping<kSelf>(keys, poison);
  expect_bits_of_keeping<kSelf>(attune::CausalMask{} && keys, poison);
  auto& padded = problem<recomputed(kSelf), float>();
  padded.draw(7);
  poison(padded);
  padded.run(keys);
  for (const float each : padded.d_query.values) EXPECT_TRUE(each - each == 0);
  attune::KeyPaddingMask<7> of_long;
  EXPECT_EQ(of_long.set_length(4), attune::Status::kOk);
  expect_bits_of_keeping<kLong>(of_long, [](auto& problem) { problem.value(5, 2) = kNan<float>; });
}

TEST(RecomputedAttention, a_query_without_gradient_has_no_influence_whatever_its_weights_are) {
  // Scores that overflow: no weight of the row is a number, while Q and K are.
  const auto overflow = [](auto& problem) {
    for (int i = 0; i < 6; ++i) problem.query(2, i) = 1e37f;
    for (float& each : problem.key.values) each *= 1e6f;
    for (int i = 0; i < 6; ++i) problem.dy(2, i) = 0;
  };
  expect_bits_of_keeping<kSelf>(attune::CausalMask{}, overflow);
}

TEST(RecomputedAttention, a_nan_that_is_not_hidden_is_the_same) {
  auto& again = problem<recomputed(kSelf), float>();
  auto& kept = problem<kSelf, float>();
  const auto spoil = [](auto& problem) {
    problem.draw(7);
    problem.key(1, 1) = kNan<float>;
    problem.run(attune::CausalMask{});
  };
  spoil(again);
  spoil(kept);
  for (int i = 0; i < kept.d_query.size; ++i) {  // the bits of a NaN are nobody's promise
    const float a = kept.d_query.values[i], b = again.d_query.values[i];
    EXPECT_TRUE((a != a && b != b) || check::same_bits(a, b));
  }
}

TEST(RecomputedAttention, drops_the_weights_that_forward_dropped) {
  expect_bits_of_keeping<kDropping>(attune::CausalMask{});
  if constexpr (check::kDepth >= check::kBoard) {
    expect_bits_of_keeping<AttentionShape{
        .seq_len = 200, .d_model = 4, .num_heads = 2, .kv_len = 5, .dropout = 0.5}>();
  } else {
    check::leave_case();
  }
}

namespace {

template <bool keep>
using Attention = attune::MultiHeadAttention<AttentionShape{
    .seq_len = 6, .d_model = 8, .num_heads = 2, .keep_weights = keep}>;
template <class Model, int batch>
using Trained = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, batch>;

}  // namespace

TEST(RecomputedAttention, resumes_from_a_state_saved_with_kept_weights) {
  static_assert(attune::kFingerprintOf<Attention<true>> == attune::kFingerprintOf<Attention<false>>);
  static_assert(sizeof(Trained<Attention<true>, 1>::State) == sizeof(Trained<Attention<false>, 1>::State));
}

TEST(RecomputedAttention, of_a_decoder_layer_keeps_no_weights_of_either_attention) {
  constexpr attune::DecoderLayerShape kShape{
      .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 12, .memory_len = 6};
  constexpr auto kWithout = [](attune::DecoderLayerShape shape) {
    shape.attention.keep_weights = false;
    return shape;
  };
  static_assert(sizeof(attune::DecoderLayer<kShape>::Tape) -
                    sizeof(attune::DecoderLayer<kWithout(kShape)>::Tape) ==
                sizeof(float) * 2 * 4 * ((4 - 2) + (6 - 2)));
}

TEST(RecomputedAttention, takes_memory_linear_in_seq_len) {
  constexpr auto kBytes = [](auto seq_len) {
    using Layer = attune::MultiHeadAttention<AttentionShape{
        .seq_len = seq_len.value, .d_model = 32, .num_heads = 4, .keep_weights = false}>;
    return sizeof(typename Layer::Tape) + sizeof(typename Layer::Scratch);
  };
  using Half = std::integral_constant<int, 1024>;
  using Whole = std::integral_constant<int, 2048>;
  static_assert(kBytes(Whole{}) == 2 * kBytes(Half{}));
  using Long = attune::MultiHeadAttention<AttentionShape{
      .seq_len = 512, .d_model = 32, .num_heads = 4, .keep_weights = false}>;
  static_assert(Trained<Long, 1>::memory().object() < 1'000'000);
  using Kept = attune::MultiHeadAttention<AttentionShape{.seq_len = 512, .d_model = 32, .num_heads = 4}>;
  static_assert(Trained<Kept, 1>::memory().object() > 5'500'000);
}
