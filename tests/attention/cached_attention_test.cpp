#include <attune/attention/cached_attention.hpp>

#include <attune/attune.hpp>

#include "attention_shapes.hpp"
#include "check.hpp"
#include "stream_cases.hpp"

namespace {

using attune::AttentionShape;
using attune::CacheShape;
using attune::MultiHeadAttention;

template <class Layer>
struct Case {
  typename Layer::Parameters parameters;
  typename Layer::Input x;

  explicit Case(std::uint64_t seed) {
    attune::Rng rng(seed);
    check::fill_set(parameters, rng, -0.7, 0.7);
    check::fill(x, rng, -2, 2);
  }
};

template <class Layer>
const Case<Layer>& case_of() {
  static const Case<Layer> a(7);
  return a;
}
template <AttentionShape shape, CacheShape cache, int chunk, class Scalar = float>
void expect_bits_of_batch() {
  using Layer = MultiHeadAttention<shape, Scalar>;
  const Case<Layer>& a = case_of<Layer>();
  check::expect_stream_of_batch<Layer, cache, chunk>(a.parameters, a.x);
}

// Sums of more than kDepthBlock keys, groups of heads, rotation, operands scaled each, heads of odd widths.
constexpr AttentionShape kLong = check::changed(
    {.seq_len = 400, .d_model = 9, .num_heads = 4, .num_kv_heads = 2, .d_k = 6}, [](auto& shape) {
      shape.d_v = 5;
      shape.d_out = 7;
      shape.scaling = attune::Scaling::kInverseFourthRootDkEach;
      shape.rotary_dim = 4;
    });
TEST(CachedAttention, has_the_bits_of_the_batch_over_blocks_of_sums) {
  expect_bits_of_batch<kLong, CacheShape{.capacity = 400}, 9>();
}
TEST(CachedAttention, has_the_bits_of_the_batch_in_a_ring_longer_than_a_block) {
  expect_bits_of_batch<kLong, CacheShape{.window = 205, .sinks = 3}, 9>();
}
TEST(CachedAttention, has_the_bits_of_the_batch_in_short_rings_with_many_sinks) {
  expect_bits_of_batch<kLong, CacheShape{.window = 31, .sinks = 200}, 40>();
  if constexpr (check::kDepth >= check::kFullHost) expect_bits_of_batch<kLong, CacheShape{.window = 1}, 2>();
}
TEST(CachedAttention, has_the_bits_of_the_batch_in_double) {
  expect_bits_of_batch<AttentionShape{.seq_len = 70, .d_model = 8, .num_heads = 2, .rotary_dim = 2},
                       CacheShape{.window = 20, .sinks = 1}, 3, double>();
}
TEST(CachedAttention, goes_through_the_options_of_a_shape) {
  constexpr AttentionShape kOptions{
      .seq_len = 70,
      .d_model = 8,
      .num_heads = 2,
      .rotary_dim = 2,
      .alibi = true,
      .relative_bias = {.kind = attune::RelativePositions::kDistance, .max_distance = 13},
      .softcap = 3,
      .query_key_norm = attune::QueryKeyNorm::kLayerNorm,
      .score_scale = attune::ScoreScale::kFactor};
  expect_bits_of_batch<kOptions, CacheShape{.window = 20, .sinks = 5}, 3>();
  constexpr AttentionShape kBuckets{
      .seq_len = 70,
      .d_model = 8,
      .num_heads = 2,
      .relative_bias = {.kind = attune::RelativePositions::kBuckets, .max_distance = 30, .buckets = 12}};
  expect_bits_of_batch<kBuckets, CacheShape{.capacity = 70}, 5>();
}

constexpr AttentionShape with_window(attune::AttentionWindow window) {
  return {.seq_len = 70, .d_model = 8, .num_heads = 2, .window = window};
}
TEST(CachedAttention, keeps_no_more_than_the_window_of_a_layer) {
  constexpr AttentionShape kQuantized = with_window({.left = 17, .sinks = 2});
  expect_bits_of_batch<kQuantized, CacheShape{.capacity = 70}, 3>();
  expect_bits_of_batch<kQuantized, CacheShape{.window = 9, .sinks = 1}, 3>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_batch<kQuantized, CacheShape{.window = 18, .sinks = 4}, 3>();
    expect_bits_of_batch<kQuantized, CacheShape{.window = 18, .sinks = 1}, 3>();
  }
  using Layer = MultiHeadAttention<kQuantized>;
  static_assert(sizeof(attune::KeyValueCache<Layer, CacheShape{.capacity = 7000}>) ==
                sizeof(attune::KeyValueCache<Layer, CacheShape{.window = 18, .sinks = 2}>));
  static_assert(attune::KeyValueCache<Layer, CacheShape{.capacity = 7000}>::kMaxTokens == 7000);
}

TEST(CachedAttention, has_the_bits_of_the_batch_for_close_and_distant_scores) {
  using Layer = MultiHeadAttention<with_window({.left = 17, .sinks = 2})>;
  for (const float size : {0.1f, 3.0f, 40.0f}) {
    Case<Layer> a = case_of<Layer>();
    for (float& value : a.x.values) value *= size;
    check::expect_stream_of_batch<Layer, CacheShape{.capacity = 70}, 3>(a.parameters, a.x);
  }
}

// Values that the batch packs at once, and 16 columns at a time.
constexpr CacheShape in_int8(CacheShape shape) {
  shape.precision = attune::CachePrecision::kInt8;
  return shape;
}
TEST(CachedAttention, in_8_bits_has_the_bits_of_the_batch_in_integers) {
  expect_bits_of_batch<kLong, in_int8({.capacity = 400}), 9>();
  expect_bits_of_batch<kLong, in_int8({.window = 205, .sinks = 3}), 9>();
  if constexpr (check::kDepth >= check::kFullHost) {
    expect_bits_of_batch<kLong, in_int8({.window = 31, .sinks = 200}), 40>();
  }
  constexpr AttentionShape kWide{.seq_len = 150, .d_model = 20, .num_heads = 2, .d_k = 18, .d_v = 53};
  expect_bits_of_batch<kWide, in_int8({.window = 33, .sinks = 1}), 7>();
}
// Rows of one number: their strides equal those of a column.
TEST(CachedAttention, in_8_bits_has_a_scale_per_token_even_for_a_single_feature) {
  constexpr AttentionShape kOneValue{
      .seq_len = 20, .d_model = 4, .num_heads = 2, .num_kv_heads = 1, .d_k = 4, .d_v = 1};
  constexpr AttentionShape kOneOfEach{.seq_len = 20, .d_model = 4, .num_heads = 1, .d_k = 1, .d_v = 1};
  expect_bits_of_batch<kOneValue, in_int8({.capacity = 20}), 3>();
  expect_bits_of_batch<kOneOfEach, in_int8({.capacity = 20}), 3>();
}
TEST(CachedAttention, in_8_bits_goes_through_the_options_of_a_shape) {
  constexpr AttentionShape kOptions{.seq_len = 70,
                                    .d_model = 32,
                                    .num_heads = 2,
                                    .rotary_dim = 4,
                                    .window = {.left = 40, .sinks = 2},
                                    .alibi = true,
                                    .relative_bias = {.kind = attune::RelativePositions::kCausalBuckets},
                                    .softcap = 3,
                                    .query_key_norm = attune::QueryKeyNorm::kUnitLength,
                                    .score_scale = attune::ScoreScale::kClampedExponential,
                                    .score_scales = 1};
  expect_bits_of_batch<kOptions, in_int8({.window = 20, .sinks = 1}), 3>();
}
TEST(CachedAttention, in_8_bits_takes_little_more_than_a_quarter) {
  using Layer = MultiHeadAttention<AttentionShape{.seq_len = 64, .d_model = 64, .num_heads = 1}>;
  constexpr CacheShape kFloats{.capacity = 160};
  constexpr std::size_t kTokens = 160, kPosition = 8;
  static_assert(sizeof(attune::KeyValueCache<Layer, in_int8(kFloats)>) ==
                kPosition + kTokens * (64 + 64 + 2 * sizeof(float)));
  constexpr attune::MemoryReport kReport = attune::stream_memory<Layer, in_int8(kFloats)>();
  static_assert(kReport.cache == sizeof(attune::KeyValueCache<Layer, in_int8(kFloats)>));
  static_assert(100 * kReport.cache < 27 * attune::stream_memory<Layer, kFloats>().cache);
  static_assert(attune::KeyValueCache<Layer, in_int8(kFloats)>::kFingerprint !=
                attune::KeyValueCache<Layer, kFloats>::kFingerprint);
}

TEST(CachedAttention, rotates_beyond_its_table_like_a_longer_table) {
  constexpr AttentionShape kShape{.seq_len = 70, .d_model = 8, .num_heads = 2, .rotary_dim = 4};
  using Long = MultiHeadAttention<kShape>;
  using Short =
      MultiHeadAttention<AttentionShape{.seq_len = 5, .d_model = 8, .num_heads = 2, .rotary_dim = 4}>;
  constexpr CacheShape kCache{.window = 33};
  const Case<Long>& a = case_of<Long>();
  check::expect_stream<Short, kCache, 4>(a.parameters, a.x, check::batch_of<Long, kCache>(a.parameters, a.x));
}

TEST(CachedAttention, in_8_bits_runs_beyond_the_layers_length) {
  using Long = MultiHeadAttention<AttentionShape{.seq_len = 70, .d_model = 64, .num_heads = 1}>;
  using Short = MultiHeadAttention<AttentionShape{.seq_len = 5, .d_model = 64, .num_heads = 1}>;
  constexpr CacheShape kCache = in_int8({.capacity = 70});
  const Case<Long>& a = case_of<Long>();
  check::expect_stream<Short, kCache, 4>(a.parameters, a.x, check::batch_of<Long, kCache>(a.parameters, a.x));
}

// Whether a stream has the batch's rows: their bits, but NaN for NaN.
template <class Layer, CacheShape cache>
void expect_numbers_of_batch(const Case<Layer>& a, int nan_rows) {
  const auto& expected = check::batch_of<Layer, cache>(a.parameters, a.x);
  using Cache = attune::KeyValueCache<Layer, cache>;
  static Cache stream;
  static typename Cache::template Scratch<> scratch;
  static attune::Tensor<float, 1, Layer::Output::cols> y;
  stream = {};
  int nans = 0;
  for (int t = 0; t < Layer::Output::rows; ++t) {
    ASSERT_EQ(Layer::step(a.parameters, check::tokens_at<1>(a.x, t), y, stream, scratch),
              attune::Status::kOk);
    bool nan = false;
    for (int j = 0; j < y.cols; ++j) {
      if (check::is_nan(expected(t, j))) {
        nan = true;
        EXPECT_TRUE(check::is_nan(y(0, j)));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(y(0, j)), std::bit_cast<std::uint32_t>(expected(t, j)));
      }
    }
    nans += nan;
  }
  EXPECT_EQ(nans, nan_rows);
}
// One head as wide as the token: Q = K = V = x, and y is the context.
using Plain = MultiHeadAttention<AttentionShape{
    .seq_len = 40, .d_model = 4, .num_heads = 1, .bias = false, .scaling = attune::Scaling::kInverseSqrtDk}>;
Case<Plain> plain() {
  Case<Plain> a(3);
  attune::for_each_tensor(
      [](const attune::TensorPath&, auto& tensor) {
        for (int i = 0; i < tensor.rows; ++i) {
          for (int j = 0; j < tensor.cols; ++j) tensor(i, j) = i == j ? 1.0f : 0.0f;
        }
      },
      a.parameters);
  return a;
}
TEST(CachedAttention, nan_is_gone_when_the_window_has_passed_it) {
  static Case<Plain> a = plain();
  a.x(11, 1) = a.x(11, 2) = 8;  // whose value is the difference of two infinities
  a.parameters.value.weight(1, 3) = 5e37f;
  a.parameters.value.weight(2, 3) = -5e37f;
  expect_numbers_of_batch<Plain, CacheShape{.window = 6}>(a, 6);
  expect_numbers_of_batch<Plain, CacheShape{.capacity = 40}>(a, 29);
  expect_numbers_of_batch<Plain, in_int8({.window = 6})>(a, 6);
  expect_numbers_of_batch<Plain, in_int8({.capacity = 40})>(a, 29);
}
TEST(CachedAttention, refuses_a_token_that_is_not_finite_and_keeps_nothing_of_it) {
  static Case<Plain> a = plain();
  using Cache = attune::KeyValueCache<Plain, CacheShape{.window = 6}>;
  static Cache stream, before;
  static typename Cache::template Scratch<> scratch;
  attune::Tensor<float, 1, 4> y{};
  ASSERT_EQ(Plain::step(a.parameters, check::tokens_at<1>(a.x, 0), y, stream, scratch), attune::Status::kOk);
  before = stream;
  for (const float value : {check::kNan<float>, check::kInfinity<float>, -check::kInfinity<float>}) {
    a.x(1, 2) = value;
    EXPECT_EQ(Plain::step(a.parameters, check::tokens_at<1>(a.x, 1), y, stream, scratch),
              attune::Status::kNotFinite);
    EXPECT_TRUE(check::same_bits(stream, before));
  }
}
TEST(CachedAttention, a_zero_weight_ignores_infinity) {
  static Case<Plain> a = plain();
  for (int t = 0; t < 40; ++t) a.x(t, 0) = 200, a.x(t, 1) = 0;
  a.x(11, 0) = -200;  // no other token attends to this one
  a.x(11, 1) = 10;    // whose value is infinite
  a.parameters.value.weight(1, 3) = 3e38f;
  expect_numbers_of_batch<Plain, CacheShape{.capacity = 40}>(a, 1);
  expect_numbers_of_batch<Plain, in_int8({.capacity = 40})>(a, 1);
}

template <CacheShape shape>
std::uint32_t hash_of_stream() {
  using Layer = MultiHeadAttention<AttentionShape{
      .seq_len = 8, .d_model = 16, .num_heads = 4, .num_kv_heads = 2, .rotary_dim = 4}>;
  using Cache = attune::KeyValueCache<Layer, shape>;
  static const Case<Layer> a(11);
  static Cache cache;
  static typename Cache::template Scratch<> scratch;
  static attune::Tensor<float, 1, 16> y;
  cache = {};
  check::BitHash hash;
  for (int t = 0; t < 300; ++t) {
    EXPECT_EQ(Layer::step(a.parameters, check::tokens_at<1>(a.x, t % 8), y, cache, scratch),
              attune::Status::kOk);
    hash.add(y);
  }
  return hash.value();
}
TEST(CachedAttention, has_one_hash_on_every_target) {
  constexpr CacheShape kShape{.window = 20, .sinks = 2};
  EXPECT_EQ(hash_of_stream<kShape>(), ATTUNE_FUSED ? 3307884158u : 2767178042u);
  EXPECT_EQ(hash_of_stream<in_int8(kShape)>(), ATTUNE_FUSED ? 864376101u : 749627061u);
}

// A decoder layer, whose memory is remembered, against its batch.
template <attune::DecoderLayerShape shape, CacheShape cache, class Mask>
void expect_decoder_of_batch(const Mask& memory_mask) {
  using Layer = attune::DecoderLayer<shape>;
  static const Case<Layer> a(13);
  static typename Layer::Memory memory;
  static typename Layer::Output expected;
  static typename Layer::InferenceScratch scratch;
  attune::Rng rng(5);
  check::fill(memory, rng);
  const check::KeptKeys<cache> mask;
  const auto context = attune::decoder_context_for<Layer>(mask, memory_mask);
  using Products = check::ProductsOf<cache>;
  auto of_tokens = context.tokens.template with_products<Products>();
  auto of_memory = context.cross.template with_products<Products>();
  Layer::forward(a.parameters, a.x, memory, expected, scratch,
                 attune::DecoderContext<decltype(of_tokens), decltype(of_memory)>{of_tokens, of_memory});
  using Cache = attune::KeyValueCache<Layer, cache>;
  static Cache stream;
  static typename Cache::template Scratch<3> three;
  static attune::Tensor<float, 3, Layer::Output::cols> y;
  Layer::remember(a.parameters, memory, stream);
  for (int again = 0; again < 2; ++again) {
    stream.reset();
    for (int t = 0; t < Layer::Output::rows; t += 3) {
      ASSERT_EQ(Layer::step(a.parameters, check::tokens_at<3>(a.x, t), y, stream, three, memory_mask),
                attune::Status::kOk);
      ASSERT_EQ(std::memcmp(y.data(), expected.data() + t * y.cols, sizeof y), 0);
    }
  }
}
TEST(CachedAttention, a_decoder_layer_projects_its_memory_once) {
  constexpr attune::DecoderLayerShape kShape{
      .attention = {.seq_len = 21, .d_model = 8, .num_heads = 2, .rotary_dim = 2},
      .d_ff = 9,
      .memory_len = 10};
  expect_decoder_of_batch<kShape, CacheShape{.capacity = 21}>(attune::NoMask{});
  attune::KeyPaddingMask<10> padding;
  ASSERT_EQ(padding.set_length(6), attune::Status::kOk);
  expect_decoder_of_batch<kShape, CacheShape{.window = 4}>(padding);
  expect_decoder_of_batch<kShape, in_int8({.window = 4})>(padding);
  static attune::Tensor<float, 21, 10> bias;
  attune::Rng rng(3);
  check::fill(bias, rng);
  expect_decoder_of_batch<kShape, CacheShape{.capacity = 21}>(attune::AdditiveMask(bias));
}
// A stream of a decoder layer in a ring.
struct Remembering {
  using Layer = attune::DecoderLayer<attune::DecoderLayerShape{
      .attention = {.seq_len = 21, .d_model = 8, .num_heads = 2}, .d_ff = 9, .memory_len = 10}>;
  using Cache = attune::KeyValueCache<Layer, CacheShape{.window = 4}>;
  const Case<Layer> a{13};
  Layer::Memory memory{};
  Cache cache{};
  Cache::Scratch<> scratch;
};
TEST(CachedAttention, a_decoder_layer_that_remembers_nothing_takes_no_step) {
  static Remembering stream;
  auto& [a, memory, cache, scratch] = stream;
  static attune::Tensor<float, 1, 8> y;
  y.set_zero();
  const auto x = check::tokens_at<1>(a.x, 0);
  const Remembering::Cache before = cache;
  EXPECT_EQ(Remembering::Layer::step(a.parameters, x, y, cache, scratch), attune::Status::kNothingRemembered);
  EXPECT_EQ(std::memcmp(&cache, &before, sizeof cache), 0);
  for (const float value : y.values) EXPECT_EQ(value, 0);
  Remembering::Layer::remember(a.parameters, memory, cache);
  EXPECT_EQ(Remembering::Layer::step(a.parameters, x, y, cache, scratch), attune::Status::kOk);
  cache.reset();  // which leaves what is remembered
  EXPECT_EQ(Remembering::Layer::step(a.parameters, x, y, cache, scratch), attune::Status::kOk);
}
TEST(CachedAttention, a_memory_mask_works_beyond_the_range_of_int_positions) {
  static Remembering stream;
  auto& [a, memory, cache, scratch] = stream;
  static attune::Tensor<float, 1, 8> masked, y;
  attune::Rng rng(5);
  check::fill(memory, rng);
  Remembering::Layer::remember(a.parameters, memory, cache);
  cache.tokens = 3'000'000'000;
  static Remembering::Cache other = cache;
  const auto x = check::tokens_at<1>(a.x, 0);
  ASSERT_EQ(Remembering::Layer::step(a.parameters, x, y, cache, scratch), attune::Status::kOk);
  ASSERT_EQ(Remembering::Layer::step(a.parameters, x, masked, other, scratch, attune::CausalMask{}),
            attune::Status::kOk);
  EXPECT_TRUE(check::same_bits(masked, y));
}

}  // namespace
