// Weights that are computed once more have the bits of weights that are kept.
#include <attune/attention/recomputed_attention.hpp>

#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/trainer.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "drawn_layer.hpp"
#include "problem.hpp"
#include "training/batch_data.hpp"

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
  static_assert(attune::detail::kLeavesOut<Mask, shape.kv_len>);
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

struct AllButOutputs {
  template <attune::Role role>
  using In = std::conditional_t<role == attune::Role::kAttentionOutput,
                                attune::Form<attune::Untrained, Tensor>, attune::Form<Tensor, Tensor>>;
};

// Gradients with a constant W_o: dO comes head by head. Scratch begins as memory of other layers does.
template <AttentionShape shape, class Scalar = float, class Mask = NoMask>
void expect_bits_of_keeping_with_constant_outputs(const Mask& mask = {}) {
  const auto run = [&]<class Layer>(Layer, auto& problem) -> auto& {
    using Trained = attune::ByRole<AllButOutputs>;
    using Gradients = attune::detail::SetOf<Layer, Trained::template Matrix, Trained::template Vector>;
    static typename Layer::template TapeOf<Gradients> tape;
    static typename Layer::template ScratchOf<Gradients> scratch;
    static Gradients gradients;
    problem.draw(7);
    attune::Rng rng(9);
    attune::draw_seeds(tape, rng);
    std::memset(static_cast<void*>(&scratch), 0xFF, sizeof scratch);
    gradients = {};
    attune::forward<Layer>(problem.parameters, problem.query, problem.key, problem.value, problem.y, tape,
                           scratch, mask);
    std::memset(static_cast<void*>(&scratch), 0xFF, sizeof scratch);
    attune::backward<Layer>(problem.parameters, problem.query, problem.key, problem.value, tape, problem.dy,
                            problem.d_query, problem.d_key, problem.d_value, gradients, scratch, mask);
    return gradients;
  };
  auto& kept = problem<shape, Scalar>();
  auto& again = problem<recomputed(shape), Scalar>();
  const auto& expected = run(attune::MultiHeadAttention<shape, Scalar>{}, kept);
  const auto& gradients = run(attune::MultiHeadAttention<recomputed(shape), Scalar>{}, again);
  EXPECT_TRUE(check::same_bits(kept.y, again.y));
  EXPECT_TRUE(check::same_bits(kept.d_query, again.d_query));
  EXPECT_TRUE(check::same_bits(kept.d_key, again.d_key));
  EXPECT_TRUE(check::same_bits(kept.d_value, again.d_value));
  EXPECT_EQ(std::memcmp(&expected, &gradients, sizeof gradients), 0);
}

}  // namespace

TEST(RecomputedAttention, has_the_bits_where_output_weights_are_constant) {
  expect_bits_of_keeping_with_constant_outputs<kSelf>(attune::CausalMask{});
  expect_bits_of_keeping_with_constant_outputs<kOptions>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_keeping_with_constant_outputs<kCross>();
    expect_bits_of_keeping_with_constant_outputs<kLong>();
    expect_bits_of_keeping_with_constant_outputs<kDropping>();
    expect_bits_of_keeping_with_constant_outputs<kSelf, double>();
    attune::KeyPaddingMask<5> keys;
    EXPECT_EQ(keys.set_length(3), attune::Status::kOk);
    expect_bits_of_keeping_with_constant_outputs<kSelf>(keys);
  }
}

namespace {

// Three optimizer steps of two trainers, the second of which does not keep weights.
template <class Kept, class Again, class Mask = NoMask>
void expect_same_training(const Mask& mask = {}) {
  static Kept kept;
  static Again again;
  check::expect_same_steps(kept, again, mask);
}

template <bool keep, int percent_dropped = 0>
using Encoder =
    attune::EncoderLayer<attune::EncoderLayerShape{.attention = {.seq_len = 6,
                                                                 .d_model = 8,
                                                                 .num_heads = 2,
                                                                 .dropout = percent_dropped / 100.0,
                                                                 .keep_weights = keep},
                                                   .d_ff = 12}>;
template <bool keep>
using Attention = attune::MultiHeadAttention<AttentionShape{
    .seq_len = 6, .d_model = 8, .num_heads = 2, .keep_weights = keep}>;
template <bool keep>
using WithOptions = attune::MultiHeadAttention<keep ? kOptions : recomputed(kOptions)>;
template <class Model, int batch, class Plan = attune::BySequence>
using Trained = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, batch, Plan>;

}  // namespace

TEST(RecomputedAttention, trains_an_encoder_layer_to_the_same_bits) {
  if constexpr (!check::kQuickBuild) {
    expect_same_training<Trained<Encoder<true>, 2>, Trained<Encoder<false>, 2>>(attune::CausalMask{});
  } else {
    check::leave_case();
  }
  expect_same_training<Trained<Encoder<true, 20>, 2>, Trained<Encoder<false, 20>, 2>>();
}

TEST(RecomputedAttention, resumes_from_a_state_saved_with_kept_weights) {
  static_assert(attune::kFingerprintOf<Attention<true>> == attune::kFingerprintOf<Attention<false>>);
  static Trained<Encoder<true, 20>, 2> kept;
  static Trained<Encoder<false, 20>, 2> again;
  kept.initialize(attune::XavierUniform{}, attune::Rng{3});
  static decltype(kept)::BatchInput x;
  static decltype(kept)::BatchTarget targets;
  attune::Rng rng(5);
  check::fill(x, rng);
  check::fill(targets, rng);
  EXPECT_TRUE(kept.step(x, targets, {.learning_rate = 0.01f}).ok());
  static std::remove_cvref_t<decltype(again.state())> state;  // as from a file
  static_assert(sizeof state == sizeof kept.state());
  std::memcpy(static_cast<void*>(&state), &kept.state(), sizeof state);
  EXPECT_EQ(again.resume(state), attune::Status::kOk);
  EXPECT_TRUE(kept.step(x, targets, {.learning_rate = 0.01f}).ok());
  EXPECT_TRUE(again.step(x, targets, {.learning_rate = 0.01f}).ok());
  EXPECT_EQ(std::memcmp(&kept.parameters(), &again.parameters(), sizeof kept.parameters()), 0);
}

TEST(RecomputedAttention, trains_to_the_same_bits_in_every_plan) {
  using Plain = Trained<Attention<true>, 1>;
  expect_same_training<Plain, Trained<Attention<false>, 1, attune::UpdateInBackward>>(attune::CausalMask{});
  expect_same_training<Trained<Attention<true>, 5>, Trained<Attention<false>, 5, attune::Lockstep>>();
}

TEST(RecomputedAttention, trains_with_every_option_to_the_same_bits_in_every_plan) {
  using Plain = Trained<WithOptions<true>, 1>;
  if constexpr (!check::kQuickBuild) {
    expect_same_training<Plain, Trained<WithOptions<true>, 1, attune::UpdateInBackward>>();
  } else {
    check::leave_case();
  }
  expect_same_training<Plain, Trained<WithOptions<false>, 1, attune::UpdateInBackward>>(attune::CausalMask{});
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_same_training<Trained<WithOptions<true>, 5>, Trained<WithOptions<false>, 5, attune::Lockstep>>();
  }
}

namespace {

template <class Model>
void expect_bits_in_slices() {
  check::expect_bits_in_slices<Trained<Model, 2>, Model, 500>();
}

template <bool keep>
using Grouped = attune::MultiHeadAttention<AttentionShape{
    .seq_len = 12, .d_model = 8, .num_heads = 4, .num_kv_heads = 2, .dropout = 0.2, .keep_weights = keep}>;
Grouped<true>::Parameters grouped;
template <bool keep>
using AdaptedGrouped = attune::Adapted<Grouped<keep>, grouped, attune::LowRank{.rank = 2}>;

}  // namespace

TEST(RecomputedAttention, trains_low_rank_to_the_same_bits_in_every_plan_and_in_slices) {
  attune::Rng rng(6);
  attune::initialize(grouped, attune::XavierUniform{}, rng);
  using Plain = Trained<AdaptedGrouped<true>, 1>;
  expect_same_training<Plain, Trained<AdaptedGrouped<false>, 1>>(attune::CausalMask{});
  // UpdateInBackward would keep gradients here, as they take less RAM.
  expect_same_training<Plain, Trained<AdaptedGrouped<false>, 1, attune::detail::NoGradientsKept<1>>>();
  expect_bits_in_slices<AdaptedGrouped<false>>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_same_training<Trained<AdaptedGrouped<true>, 5>,
                         Trained<AdaptedGrouped<false>, 5, attune::Lockstep>>();
  }
}

TEST(RecomputedAttention, trains_to_the_same_bits_in_slices) {
  if constexpr (check::kDepth >= check::kBoard) {
    expect_bits_in_slices<attune::MultiHeadAttention<AttentionShape{
        .seq_len = 37, .d_model = 4, .num_heads = 2, .dropout = 0.3, .keep_weights = false}>>();
  } else {
    check::leave_case();
  }
  if constexpr (!check::kQuickBuild) {
    expect_bits_in_slices<WithOptions<true>>();
  } else {
    check::leave_case();
  }
  expect_bits_in_slices<WithOptions<false>>();
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
  const auto gradients_of = [](auto layer, auto& d_memory, auto& dx) {
    using Layer = decltype(layer);
    static check::DrawnDecoder<Layer> of;
    attune::Rng rng(4);
    of.draw(rng);
    Layer::forward(of.parameters, of.x, of.memory, of.y, of.tape, of.scratch);
    Layer::backward(of.parameters, of.x, of.memory, of.tape, of.y, dx, d_memory, of.gradients, of.scratch);
  };
  Tensor<float, 6, 8> kept_d_memory, d_memory;
  Tensor<float, 4, 8> kept_dx, dx;
  gradients_of(attune::DecoderLayer<kShape>{}, kept_d_memory, kept_dx);
  gradients_of(attune::DecoderLayer<kWithout(kShape)>{}, d_memory, dx);
  EXPECT_TRUE(check::same_bits(kept_d_memory, d_memory));
  EXPECT_TRUE(check::same_bits(kept_dx, dx));
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
