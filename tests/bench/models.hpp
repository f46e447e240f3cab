// Whole models, of the shapes that people deploy, with what they compute counted. One table: programs for
// this machine and for boards build a model by its name, and tell Python its sizes.
//
// * kwt1, kwt2: keyword spotting, 98 tokens of 40 features, 12 layers (Berg et al., "Keyword Transformer",
// 2021)
// * bioformer: gestures from muscles, 31 tokens, 8 heads of 32, one layer (Burrello et al., "Bioformers",
// 2022)
// * digits: examples/digits at 8x32x4, rows of an image, two layers
// * storiesN: 260 thousand parameters in Llama's blocks, of N tokens, the head tied to the embedding
// * attentionN: one attention layer of N tokens
//
// The first two have no class token here (the mean of all tokens goes to the head), and biases on queries,
// keys and values.
#pragma once

#include <string_view>

#include <attune/attune.hpp>

namespace bench {

enum class Kind { kClassifier, kLanguage, kAttention };

struct ModelShape {
  Kind kind;
  int seq_len;
  int d_in;  // features of a token, or the vocabulary
  int d_model;
  int num_layers;
  int num_heads;
  int num_kv_heads;
  int d_head;
  int d_ff;
  int d_out;  // classes, or the vocabulary
  attune::NormPlacement norm = attune::NormPlacement::kBefore;
};

struct NamedModel {
  std::string_view name;
  ModelShape shape;
};

constexpr ModelShape stories(int seq_len) {
  return {Kind::kLanguage, seq_len, 512, 64, 5, 8, 4, 8, 172, 512};
}
constexpr ModelShape attention(int seq_len) {
  return {Kind::kAttention, seq_len, 64, 64, 1, 4, 4, 16, 0, 64};
}

// A line for each: tests/bench/run and CMakeLists.txt read the names here.
inline constexpr NamedModel kModels[] = {
    {"kwt1", {Kind::kClassifier, 98, 40, 64, 12, 1, 1, 64, 256, 35, attune::NormPlacement::kAfter}},
    {"kwt2", {Kind::kClassifier, 98, 40, 128, 12, 2, 2, 64, 512, 35, attune::NormPlacement::kAfter}},
    {"bioformer", {Kind::kClassifier, 31, 140, 64, 1, 8, 8, 32, 128, 8}},
    {"digits", {Kind::kClassifier, 8, 8, 32, 2, 4, 4, 8, 64, 10}},
    {"stories128", stories(128)},
    {"stories512", stories(512)},
    {"attention64", attention(64)},
    {"attention128", attention(128)},
    {"attention256", attention(256)},
    {"attention512", attention(512)},
    {"attention1024", attention(1024)},
};

void no_such_model();  // is not constant: the compiler names it
consteval ModelShape shape_of(std::string_view name) {
  for (const NamedModel& model : kModels) {
    if (model.name == name) return model.shape;
  }
  no_such_model();
  return {};
}

// ---- What they compute. ----

/// Multiply-accumulates of the products of one sequence, forward. Of a score that a causal mask hides there
/// are none, whatever an implementation spends on it.
constexpr long forward_macs(const ModelShape& s) {
  const bool causal = s.kind == Kind::kLanguage;
  const long n = s.seq_len, d = s.d_model, keys = causal ? (n + 1) : 2 * n;  // twice a query's, on average
  const long projections = 2 * d * (s.num_heads + s.num_kv_heads) * s.d_head;
  const long attention = keys * s.num_heads * s.d_head;  // Q·Kᵀ and P·V
  const long network = (causal ? 3 : 2) * d * s.d_ff;
  const long layers = n * s.num_layers * (projections + attention + network);
  switch (s.kind) {
    case Kind::kClassifier:
      return n * s.d_in * d + layers + d * s.d_out;
    case Kind::kLanguage:
      return layers + n * d * s.d_out;
    case Kind::kAttention:
      return layers;
  }
  return 0;
}

/// Of a training step on one sequence: backward has two products for each of forward, but none for the
/// gradient of the input.
constexpr long step_macs(const ModelShape& s) {
  const long n = s.seq_len, d = s.d_model;
  const long of_input = s.kind == Kind::kClassifier  ? n * s.d_in * d
                        : s.kind == Kind::kAttention ? n * d * (s.num_heads + 2 * s.num_kv_heads) * s.d_head
                                                     : 0;
  return 3 * forward_macs(s) - of_input;
}

/// Of a step that trains factors beside a constant base (LoRA): the gradients of inputs, but none of weights.
/// The factors' own products, a few percent, are not counted.
constexpr long lora_macs(const ModelShape& s) { return (forward_macs(s) + step_macs(s)) / 2; }

// ---- The models. ----

template <ModelShape s>
inline constexpr attune::AttentionShape kAttentionOf{.seq_len = s.seq_len,
                                                     .d_model = s.d_model,
                                                     .num_heads = s.num_heads,
                                                     .num_kv_heads = s.num_kv_heads,
                                                     .d_k = s.d_head,
                                                     .bias = s.kind != Kind::kLanguage,
                                                     .rotary_dim = s.kind == Kind::kLanguage ? s.d_head : 0,
                                                     .rotary_pairs = attune::RotaryPairs::kInterleaved};

template <ModelShape s>
inline constexpr attune::NormShape kNormOf{.rows = s.seq_len, .d_model = s.d_model};

template <ModelShape s, Kind = s.kind>
struct ModelOf;

template <ModelShape s>
struct ModelOf<s, Kind::kAttention> {
  using type = attune::MultiHeadAttention<kAttentionOf<s>>;
  using Loss = attune::MeanSquaredError;
  using Mask = attune::NoMask;
};

template <ModelShape s>
struct ModelOf<s, Kind::kClassifier> {
  using Layer = attune::EncoderLayerOf<
      attune::MultiHeadAttention<kAttentionOf<s>>,
      attune::FeedForward<attune::FeedForwardShape{
          .rows = s.seq_len, .d_model = s.d_model, .d_ff = s.d_ff, .activation = attune::Activation::kGelu}>,
      attune::LayerNorm<kNormOf<s>>, attune::BranchOptions{.norm = s.norm}>;
  using type = attune::Sequential<attune::Linear<attune::LinearShape{s.seq_len, s.d_in, s.d_model}>,
                                  attune::LearnedPositions<attune::PositionShape{s.seq_len, s.d_model}>,
                                  attune::Repeat<s.num_layers, Layer>,
                                  attune::Pooling<attune::PoolingShape{s.seq_len, s.d_model}>,
                                  attune::Linear<attune::LinearShape{1, s.d_model, s.d_out}>>;
  using Loss = attune::CrossEntropy<>;
  using Mask = attune::NoMask;
};

template <ModelShape s>
struct ModelOf<s, Kind::kLanguage> {
  using Layer =
      attune::EncoderLayerOf<attune::MultiHeadAttention<kAttentionOf<s>>,
                             attune::SwiGlu<attune::FeedForwardShape{
                                 .rows = s.seq_len, .d_model = s.d_model, .d_ff = s.d_ff, .bias = false}>,
                             attune::RmsNorm<kNormOf<s>>, attune::BranchOptions{.norm = s.norm}>;
  using type =
      attune::Tied<attune::Embedding<attune::EmbeddingShape{s.seq_len, s.d_in, s.d_model}>,
                   attune::Sequential<attune::Repeat<s.num_layers, Layer>, attune::RmsNorm<kNormOf<s>>>>;
  using Loss = attune::CrossEntropy<>;
  using Mask = attune::CausalMask;
};

template <ModelShape s>
using Model = typename ModelOf<s>::type;
template <ModelShape s>
using LossOf = typename ModelOf<s>::Loss;
template <ModelShape s>
using MaskOf = typename ModelOf<s>::Mask;

/// Draws features of [-1, 1), or ids below `count`.
void draw(auto& numbers, [[maybe_unused]] int count, attune::Rng& rng) {
  if constexpr (requires { numbers.values; }) {
    for (float& value : numbers.values) value = rng.uniform(-1.0f, 1.0f);
  } else {
    for (int& id : numbers) id = static_cast<int>(rng.next() % static_cast<unsigned>(count));
  }
}

}  // namespace bench
