// Sizes and options of MultiHeadAttention, and their checks.
#pragma once

#include <attune/attention/relative_positions.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/window_mask.hpp>
#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/execution/layer.hpp>

namespace ATTUNE_NAMESPACE {

/// The factor of Q·Kᵀ.
enum class Scaling {
  kInverseSqrtDk = 0,            // 1/√d_k, the paper's and PyTorch's
  kInverseSqrtDModel = 1,        // 1/√d_model
  kInverseFourthRootDkEach = 2,  // d_k^-¼ on Q and on K before their product, to keep both small
  kOne = 3,                      // no factor, as in T5 and LSA
};

/// Normalization of each head's queries and keys over d_k, before rotation. The heads share its parameters
/// (Henry et al., "Query-Key Normalization for Transformers", 2020; Dehghani et al., "Scaling Vision
/// Transformers to 22 Billion Parameters", 2023).
enum class QueryKeyNorm {
  kNone = 0,            // nothing
  kRootMeanSquare = 1,  // RmsNorm, as in Qwen 3 and Gemma 3
  kLayerNorm = 2,       // LayerNorm; with a bias where the projections have one
  kUnitLength = 3,  // q / √(|q|² + ε): scores are cosines, without the factor `scaling`. No parameters
};

/// A trained factor f(t) of the scores, with one t for all heads or one per head (score_scale.hpp).
enum class ScoreScale {
  kNone = 0,                // nothing
  kFactor = 1,              // t (Henry et al., 2020; XCiT's temperature)
  kInverse = 2,             // 1/t, a temperature
  kExponential = 3,         // e^t (Lee et al., "Vision Transformer for Small-Size Datasets", 2021: LSA)
  kClampedExponential = 4,  // e^t, at most 100 (Liu et al., "Swin Transformer V2", 2022)
};

/// Sizes and options of the layer. Self-attention needs seq_len, d_model and num_heads; the other sizes
/// follow from them.
struct AttentionShape {
  int seq_len;  // queries
  int d_model;  // width of a query token
  int num_heads;
  int num_kv_heads = num_heads;  // heads of keys and values, shared by groups of query heads (Ainslie et al.,
                                 // "GQA", 2023); 1: multi-query attention (Shazeer, 2019)
  int kv_len = seq_len;          // keys and values
  int d_k =
      num_heads > 0 && d_model % num_heads == 0 ? d_model / num_heads : -1;  // per head: queries and keys
  int d_v = d_k;                                                             // per head: values
  int d_key = d_model;                        // width of a key token (PyTorch: kdim)
  int d_value = d_model;                      // width of a value token (PyTorch: vdim)
  int d_out = d_model;                        // width of an output token
  bool bias = true;                           // of projections
  bool output_bias = bias;                    // bias of the output projection
  Scaling scaling = Scaling::kInverseSqrtDk;  // the factor of the scores
  int rotary_dim = 0;                         // rotated features of each head's queries and keys; 0: none
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  double rotary_base = 10'000;
  RotaryScaling rotary_scaling = {};  // scaling of the frequencies for longer sequences
  double dropout = 0;                 // probability to drop an attention weight, in training
  bool keep_weights = true;     // from forward to backward, seq_len · kv_len per head; false: recompute them
  AttentionWindow window = {};  // the layer's own mask, in addition to the context's
  bool alibi = false;           // AlibiBias (alibi.hpp), in addition to the context's mask
  RelativeBias relative_bias = {};  // trained biases of the scores by relative position
  double softcap = 0;               // scaled scores s become softcap · tanh(s / softcap); 0: unchanged
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double query_key_epsilon = 1e-5;
  ScoreScale score_scale = ScoreScale::kNone;
  int score_scales = num_heads;  // 1 for all heads, or num_heads
  bool add_bias_kv = false;      // appends a trained key and value after projection and rotation; no mask
                                 // hides them (PyTorch)
  bool add_zero_attn = false;    // appends a key and value of zeros, also never hidden
  int offset = 0;  // position of the first query, for rotation, window and biases; keys start at 0

  /// The key head of a query head: head h reads K and V of head h / (num_heads / num_kv_heads).
  [[nodiscard]] constexpr int kv_head_of(int head) const { return head / (num_heads / num_kv_heads); }
  /// Whether a bias of keys can affect softmax. Without these options it adds the same number to all scores
  /// of a query.
  [[nodiscard]] constexpr bool key_bias_counts() const {
    return rotary_dim > 0 || softcap > 0 || query_key_norm != QueryKeyNorm::kNone || num_keys() > kv_len;
  }
  /// Number of keys, including appended ones.
  [[nodiscard]] constexpr int num_keys() const {
    return kv_len + (add_bias_kv ? 1 : 0) + (add_zero_attn ? 1 : 0);
  }
};

namespace detail {

/// In place of an option that a shape leaves out: nothing to store, and nothing to do. Each has a type of its
/// own, so that all can share one address.
template <AttentionShape shape, class ScalarType, int number>
struct NoOption {
  using Scalar = ScalarType;
  struct Parameters {
    ATTUNE_FIELDS()
  };
  template <template <class, int, int> class, class...>
  struct StoredIn {
    ATTUNE_INLINE static void visit(const auto&...) {}
    ATTUNE_INLINE static void clear(const auto&) {}
    ATTUNE_INLINE static auto scores_of(int, const auto& scores, const auto&) { return scores; }
    ATTUNE_INLINE static void add_to(const auto&...) {}
  };
  struct NoAngles {};
  template <int tokens>
  using Angles = NoAngles;
  template <CacheShape cache>
  using ExtendedAngles = NoAngles;
  ATTUNE_INLINE static void compute_angles(const auto&...) {}
  ATTUNE_INLINE static NoMask mask(const auto&) { return {}; }
  ATTUNE_INLINE static void forward(const auto&...) {}
  ATTUNE_INLINE static void forward_queries(const auto&...) {}
  ATTUNE_INLINE static void forward_keys(const auto&...) {}
  ATTUNE_INLINE static void backward(const auto&...) {}
};

/// Leaves out options at their defaults, so new options do not change the fingerprints of older shapes.
constexpr std::uint32_t fingerprint_of(const AttentionShape& shape) {
  std::uint32_t state = fingerprint(shape.num_heads, shape.kv_len, shape.scaling, shape.rotary_dim,
                                    shape.rotary_pairs, shape.rotary_base, shape.dropout);
  const auto add = [&state](bool said, const auto&... values) {
    if (said) state = fingerprint(state, values...);
  };
  add(shape.num_kv_heads != shape.num_heads, "num_kv_heads", shape.num_kv_heads);
  add(shape.window.hides(), "window", shape.window.left, shape.window.right, shape.window.sinks);
  add(shape.alibi, "alibi");
  add(shape.relative_bias.kind != RelativePositions::kNone, "relative_bias", shape.relative_bias.kind,
      shape.relative_bias.max_distance, shape.relative_bias.buckets, shape.relative_bias.rows,
      shape.relative_bias.cols, shape.relative_bias.prefix);
  add(shape.softcap != 0, "softcap", shape.softcap);
  add(shape.query_key_norm != QueryKeyNorm::kNone, "query_key_norm", shape.query_key_norm,
      shape.query_key_epsilon);
  add(shape.score_scale != ScoreScale::kNone, "score_scale", shape.score_scale, shape.score_scales);
  add(shape.window.own_key != OwnKey::kSeen, "without its own key");
  add(shape.add_bias_kv, "add_bias_kv");
  add(shape.add_zero_attn, "add_zero_attn");
  add(shape.offset != 0, "offset", shape.offset);
  return add_scaling(state, shape.rotary_scaling);
}

/// The first wrong option of a shape, by the number of its message in checked_attention_shape(); 0 if all are
/// right.
constexpr int wrong_option(const AttentionShape& shape) {
  if (shape.seq_len <= 0 || shape.kv_len <= 0) return 1;
  if (shape.d_model <= 0 || shape.d_key <= 0 || shape.d_value <= 0 || shape.d_out <= 0) return 2;
  if (shape.num_heads <= 0) return 3;
  if (shape.num_kv_heads <= 0 || shape.num_heads % shape.num_kv_heads != 0) return 4;
  if (shape.d_k == -1) return 5;
  if (shape.d_k <= 0 || shape.d_v <= 0) return 6;
  if (shape.rotary_dim < 0 || shape.rotary_dim % 2 != 0 || shape.rotary_dim > shape.d_k) return 7;
  if (shape.softcap != 0 && !(shape.softcap >= 1e-30 && shape.softcap <= 1e30)) return 8;
  if (shape.window.left < 0 || shape.window.right < 0 || shape.window.sinks < 0) return 9;
  // The only key of a window, or of the layer, may be the query's own.
  if (shape.window.own_key == OwnKey::kHidden && shape.num_keys() == shape.kv_len &&
      ((shape.window.left == 0 && shape.window.right == 0 && shape.window.sinks == 0) ||
       (shape.seq_len == 1 && shape.kv_len == 1 && shape.offset == 0))) {
    return 10;
  }
  if (shape.score_scale != ScoreScale::kNone && shape.score_scales != 1 &&
      shape.score_scales != shape.num_heads) {
    return 11;
  }
  if (shape.offset < 0 || shape.offset > 1 << 30) return 12;
  if (valid_relative_bias(shape.relative_bias, shape.seq_len, shape.kv_len, shape.offset)) return 0;
  return shape.relative_bias.on_grid() ? 13 : 14;
}
/// The layer's shape; after an error, a valid shape with the same tokens, so that no other check fails.
template <AttentionShape shape>
constexpr AttentionShape checked_attention_shape() {
  constexpr int kWrong = wrong_option(shape);
  static_assert(
      Holds<(kWrong != 1)>,
      "attune::MultiHeadAttention: seq_len and kv_len must be positive; set them in AttentionShape");
  static_assert(Holds<(kWrong != 2)>,
                "attune::MultiHeadAttention: d_model, d_key, d_value and d_out must be positive");
  static_assert(Holds<(kWrong != 3)>,
                "attune::MultiHeadAttention: num_heads must be positive; 1 is a single head");
  static_assert(Holds<(kWrong != 4)>,
                "attune::MultiHeadAttention: num_kv_heads must divide num_heads; num_heads / num_kv_heads "
                "query heads share one key and value head");
  static_assert(
      Holds<(kWrong != 5)>,
      "attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides "
      "d_model, or set d_k and d_v in AttentionShape");
  static_assert(Holds<(kWrong != 6)>,
                "attune::MultiHeadAttention: d_k and d_v must be positive; with more heads "
                "than d_model, set them in AttentionShape");
  static_assert(Holds<(kWrong != 7)>,
                "attune::MultiHeadAttention: rotary_dim must be even and at most d_k: features of a head are "
                "rotated in pairs; 0 rotates none");
  static_assert(Holds<(kWrong != 8)>,
                "attune::MultiHeadAttention: softcap must be in [1e-30, 1e30], or 0 for no cap");
  static_assert(Holds<(kWrong != 9)>,
                "attune::MultiHeadAttention: left, right and sinks of a window must not be negative; use "
                "kUnlimited for no bound");
  static_assert(Holds<(kWrong != 10)>,
                "attune::MultiHeadAttention: no query sees a key but its own, which OwnKey::kHidden hides; "
                "leave it out, or widen the window");
  static_assert(Holds<(kWrong != 11)>,
                "attune::MultiHeadAttention: score_scales must be 1 for all heads, or num_heads");
  static_assert(Holds<(kWrong != 12)>, "attune::MultiHeadAttention: offset must be in [0, 2^30]");
  static_assert(
      Holds<(kWrong != 13)>,
      "attune::MultiHeadAttention: the grid of relative_bias has other tokens than the layer; kv_len "
      "must be prefix + rows * cols, and offset + seq_len at most kv_len");
  static_assert(
      Holds<(kWrong != 14)>,
      "attune::MultiHeadAttention: relative_bias needs max_distance in [1, 32768]; buckets, at least "
      "2 per side and at most 128, need a max_distance above half of a side");
  if (kWrong == 0) return shape;
  return {.seq_len = at_least_one(shape.seq_len),
          .d_model = at_least_one(shape.d_model),
          .num_heads = 1,
          .kv_len = at_least_one(shape.kv_len),
          .d_key = at_least_one(shape.d_key),
          .d_value = at_least_one(shape.d_value),
          .d_out = at_least_one(shape.d_out),
          .bias = shape.bias};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
