// Misuse of attune/attention that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: additive_mask_of_a_temporary
// error: attune::AdditiveMask: the matrix is a temporary and does not outlive the mask; store it in a
const attune::AdditiveMask mask(attune::Tensor<float, 4, 4>{});

// case: additive_mask_of_another_length
// error: attune::AdditiveMask: the mask and the layer have different kv_len
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::Tensor<float, 4, 5> bias{};
  attune::infer<Layer>(parameters, x, y, scratch, attune::AdditiveMask(bias));
}

// case: additive_mask_of_another_seq_len
// error: attune::AdditiveMask: the mask's seq_len differs from the layer's, or from the cache's capacity in
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y, Layer::Tape& tape,
         Layer::Scratch& scratch) {
  attune::Tensor<float, 3, 4> bias{};
  attune::forward<Layer>(parameters, x, y, tape, scratch, attune::AdditiveMask(bias));
}

// case: additive_masks_of_a_temporary
// error: attune::AdditiveMask: the matrix is a temporary and does not outlive the mask; store it in a
attune::Tensor<float, 8, 4> biases();
const auto mask = attune::additive_mask_per_head<2>(biases());

// case: additive_masks_of_another_number_of_heads
// error: attune::additive_mask_per_head: the mask and the layer have different numbers of heads
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::Tensor<float, 2 * 4, 4> biases{};
  attune::infer<Layer>(parameters, x, y, scratch, attune::additive_mask_per_head<2>(biases));
}

// case: alibi_of_another_number_of_heads
// error: attune::AlibiBias: the bias and the layer have different numbers of heads
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 4}>;

void infer(const Layer::Parameters& parameters, Layer::InferenceScratch& scratch) {
  Layer::Input x;
  Layer::Output y;
  attune::infer<Layer>(parameters, x, y, scratch, attune::AlibiBias<8>{});
}

// case: attention_weights_with_strides
// error: attune::scaled_dot_product_attention: weights are a strided view
using Keys = attune::Tensor<float, 4, 8>;

void use(const Keys& query, const Keys& key, const Keys& value, Keys& context,
         attune::Tensor<float, 4, 16>& weights) {
  attune::scaled_dot_product_attention(query, key, value, context, attune::view(weights).columns<4>(0), 1.0f);
}

// case: average_of_weights_that_are_not_kept
// error: attune::MultiHeadAttention: attention weights are not kept; set .keep_weights = true in
// error: set .keep_weights = true in AttentionShape
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .keep_weights = false};

using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Tape& tape, Layer::Weights& mean) { tape.average_weights(mean); }

// case: d_model_not_divisible
// error: attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides d_model, or set d_k and d_v in AttentionShape
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 3};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: masks_per_head_not_stacked
// error: attune::additive_mask_per_head: rows must be num_heads * seq_len, heads stacked
attune::Tensor<float, 5, 4> bias{};
auto mask = attune::additive_mask_per_head<2>(bias);

// case: more_heads_than_d_model
// error: attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides d_model, or set d_k and d_v in AttentionShape
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 2, .num_heads = 4};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: negative_rotary_dim
// error: attune::MultiHeadAttention: rotary_dim must be even and at most d_k
#include <attune/attention/multi_head_attention.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .rotary_dim = -2};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: negative_softcap
// error: attune::MultiHeadAttention: softcap must be in [1e-30, 1e30], or 0 for no cap
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .softcap = -30};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: negative_window
// error: attune::MultiHeadAttention: left, right and sinks of a window must not be negative; use kUnlimited
// they are kUnlimited
constexpr attune::AttentionShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .window = {.left = -1, .right = 0}};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: num_kv_heads_that_do_not_divide
// error: attune::MultiHeadAttention: num_kv_heads must divide num_heads; num_heads / num_kv_heads query
// of keys and values
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 4, .num_kv_heads = 3};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: one_input_for_cross_attention
// error: attune::MultiHeadAttention: self-attention needs kv_len, d_key and d_value equal to seq_len and d_model; pass query, key and value
// errors: 2  the one input has the shape of no key, either
// kilobytes: 10  the way from the call to the layer
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .kv_len = 5};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch);
}

// case: padding_mask_of_another_length
// error: attune::KeyPaddingMask: the mask and the layer have different kv_len
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::KeyPaddingMask<5> mask;
  attune::infer<Layer>(parameters, x, y, scratch, mask);
}

// case: pooling_of_another_length
// error: attune::KeyPaddingMask: the mask and the layer have different kv_len
using Mean = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>;

void use(const Mean::Input& x, Mean::Output& y, Mean::InferenceScratch& scratch) {
  attune::infer<Mean>({}, x, y, scratch, attune::KeyPaddingMask<5>{});
}

// case: query_padding_mask_of_another_length
// error: attune::QueryPaddingMask: the mask's seq_len differs from the layer's, or from the cache's capacity
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::infer<Layer>(parameters, x, y, scratch, attune::CausalMask{} && attune::QueryPaddingMask<5>{});
}

// case: rotary_dim_wider_than_a_head
// error: attune::MultiHeadAttention: rotary_dim must be even and at most d_k
#include <attune/attention/multi_head_attention.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .rotary_dim = 8};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: rotary_of_odd_width
// error: attune::RotaryPositions: rotary_dim must be even and at most d_k: features are rotated in pairs
#include <attune/attention/rotary_positions.hpp>

attune::RotaryPositions<attune::RotaryShape{.seq_len = 4, .num_heads = 2, .d_k = 5}>::Input x;

// case: sequence_length_of_another_model
// error: attune::SequenceLength: the length and the layer have different seq_len
// kilobytes: 10  the options of the shape, in every line
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(attune::Trainer<Layer, attune::MeanSquaredError>& trainer, const Layer::Input& x) {
  attune::SequenceLength<5> length;
  (void)trainer.accumulate(x, x, length);
}

// case: softcap_beyond_float
// error: attune::MultiHeadAttention: softcap must be in [1e-30, 1e30], or 0 for no cap
constexpr attune::AttentionShape kShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .softcap = 1e40};  // infinity in float
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: stream_of_a_mask_of_another_seq_len
// error: attune::AdditiveMask: the mask's seq_len differs from the layer's, or from the cache's capacity in
// kilobytes: 46  the way from the call to the layer
constexpr attune::DecoderLayerShape kShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 5, .memory_len = 3};
using Layer = attune::DecoderLayer<kShape>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
                   attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch,
                   const attune::Tensor<float, 4, 3>& bias) {
  return Layer::step(parameters, x, y, cache, scratch, attune::AdditiveMask(bias));
}

// case: score_scales_for_some_heads
// error: attune::MultiHeadAttention: score_scales must be 1 for all heads, or num_heads
constexpr attune::AttentionShape kShape{.seq_len = 4,
                                        .d_model = 8,
                                        .num_heads = 4,
                                        .score_scale = attune::ScoreScale::kFactor,
                                        .score_scales = 2};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: relative_bias_of_another_grid
// error: attune::MultiHeadAttention: the grid of relative_bias has other tokens than the layer; kv_len must be prefix +
attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 7,
    .d_model = 8,
    .num_heads = 2,
    .relative_bias = {.kind = attune::RelativePositions::kGrid, .rows = 2, .cols = 3}}>::Parameters
    parameters;

// case: relative_bias_of_queries_after_its_grid
// error: attune::MultiHeadAttention: the grid of relative_bias has other tokens than the layer; kv_len must be prefix +
attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 6,
    .d_model = 8,
    .num_heads = 2,
    .relative_bias = {.kind = attune::RelativePositions::kGridDistance, .rows = 2, .cols = 3},
    .offset = 1}>::Parameters parameters;

// case: relative_bias_with_too_few_distances
// error: attune::MultiHeadAttention: relative_bias needs max_distance in [1, 32768]; buckets, at least 2 per side and at
constexpr attune::AttentionShape kShape{
    .seq_len = 7,
    .d_model = 8,
    .num_heads = 2,
    .relative_bias = {.kind = attune::RelativePositions::kBuckets, .max_distance = 8}};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: relative_bias_of_an_odd_number_of_buckets
// error: attune::MultiHeadAttention: relative_bias needs max_distance in [1, 32768]; buckets, at least 2 per side and at
constexpr attune::AttentionShape kShape{
    .seq_len = 7,
    .d_model = 8,
    .num_heads = 2,
    .relative_bias = {.kind = attune::RelativePositions::kBuckets, .buckets = 9}};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: window_of_a_hidden_key
// error: attune::MultiHeadAttention: no query sees a key but its own, which OwnKey::kHidden hides; leave it out, or
attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4,
    .d_model = 8,
    .num_heads = 2,
    .window = {.left = 0, .right = 0, .own_key = attune::OwnKey::kHidden}}>::Parameters parameters;

// case: one_token_without_its_own_key
// error: attune::MultiHeadAttention: no query sees a key but its own, which OwnKey::kHidden hides; leave it out, or
attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 1, .d_model = 8, .num_heads = 2, .window = {.own_key = attune::OwnKey::kHidden}}>::Parameters
    parameters;

// case: stream_without_its_own_keys
// error: attune: the first token of a stream sees no key but its own; leave out OwnKey::kHidden
// kilobytes: 9  the options of the shape, in every line
using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .window = {.own_key = attune::OwnKey::kHidden}}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;

// case: stream_of_a_grid
// error: attune: a stream has no grid of tokens; use the distances or buckets of RelativePositions
// kilobytes: 9  the options of the shape, in every line
using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 6,
    .d_model = 8,
    .num_heads = 2,
    .relative_bias = {.kind = attune::RelativePositions::kGrid, .rows = 2, .cols = 3}}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;

// case: stream_of_appended_keys
// error: attune: a stream has no last token to append keys to; leave out add_bias_kv and add_zero_attn
// kilobytes: 9  the options of the shape, in every line
using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .add_zero_attn = true}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;

// case: stream_of_cross_attention
// error: attune: cross-attention alone does not run token by token; use a DecoderLayer, which caches the
// kilobytes: 9  the options of the shape, in every line
using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 4, .d_model = 8, .num_heads = 2, .kv_len = 5}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;

// case: weights_of_a_quantized_tape
// error: attune::MultiHeadAttention: the weights of a packed tape cannot be read; leave out QuantizedTape
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Model = attune::QuantizedTape<attune::Repeat<2, Layer>>;

void use(const Model::Tape& tape, Layer::Weights& mean) { tape.layers[0].average_weights(mean); }

// case: weights_that_are_not_kept
// error: attune::MultiHeadAttention: attention weights are not kept; set .keep_weights = true in
// error: set .keep_weights = true in AttentionShape
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .keep_weights = false};

float use(const attune::MultiHeadAttention<kShape>::Tape& tape) { return tape.head_weights(0)(0, 0); }

// case: zero_d_k
// error: attune::MultiHeadAttention: d_k and d_v must be positive; with more heads than d_model, set them in AttentionShape
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .d_k = 0};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: zero_d_model
// error: attune::MultiHeadAttention: d_model, d_key, d_value and d_out must be positive
constexpr attune::AttentionShape kShape{.seq_len = 4, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: zero_heads
// error: attune::MultiHeadAttention: num_heads must be positive; 1 is a single head
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8};
attune::MultiHeadAttention<kShape>::Parameters parameters;

// case: zero_seq_len
// error: attune::MultiHeadAttention: seq_len and kv_len must be positive; set them in AttentionShape
constexpr attune::AttentionShape kShape{.d_model = 8, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Parameters parameters;
