// One layer of a transformer encoder: self-attention, then a feed-forward network. Each is a residual branch
// with layer normalization (Vaswani et al., "Attention Is All You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    y = norm₂(h + F(h))
//   norm before:   h = x + A(norm₁(x)),    y = h + F(norm₂(h))
//
//   EncoderLayer<{.attention = {.seq_len = 16, .d_model = 32, .num_heads = 4}, .d_ff = 64}>   PyTorch's layer
//   EncoderLayerOf<MultiHeadAttention<kShape>, SwiGlu<kNetwork>, RmsNorm<kNorm>>              your own parts
#pragma once

#include <attune/models/transformer_layer.hpp>
#include <attune/weights/roles.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <BranchOptions options, class Norm, class SelfAttention, class Network>
using EncoderStack = ResidualStack<options, Norm, LayerBranch<SelfAttentionMember, SelfAttention>,
                                   LayerBranch<FeedForwardMember, Network>>;

}  // namespace detail

/// An encoder layer made of given parts. A, F and the norm are layers (execution/layer.hpp) from [seq_len,
/// d_model] to [seq_len, d_model], the library's or your own. The norm also has recompute(parameters, x,
/// tape, y). In training, dropout applies to the outputs of A and F, not inside them.
template <detail::CheckedLayer Attention, detail::CheckedLayer NetworkLayer, detail::CheckedLayer NormLayer,
          BranchOptions options = BranchOptions{}>
struct EncoderLayerOf : detail::EncoderStack<options, NormLayer, Attention, NetworkLayer>,
                        detail::Steps<EncoderLayerOf<Attention, NetworkLayer, NormLayer, options>> {
 private:
  using Stack = detail::EncoderStack<options, NormLayer, Attention, NetworkLayer>;

 public:
  using Scalar = typename Attention::Scalar;
  template <class Other>
  using WithScalar = EncoderLayerOf<typename detail::WithScalarOf<Attention, Other>::type,
                                    typename detail::WithScalarOf<NetworkLayer, Other>::type,
                                    typename detail::WithScalarOf<NormLayer, Other>::type, options>;
  using SelfAttention = Attention;
  using Network = NetworkLayer;
  using Norm = NormLayer;
  using Input = typename Attention::Input;
  using Output = Input;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] detail::SetOfMember<SelfAttention, 0, Matrix, Vector> self_attention;
    [[no_unique_address]] detail::SetOfMember<Network, 1, Matrix, Vector> feed_forward;
    [[no_unique_address]] detail::SetOfMember<Norm, 2, Matrix, Vector> norm1;
    [[no_unique_address]] detail::SetOfMember<Norm, 3, Matrix, Vector> norm2;
    ATTUNE_FIELDS(Set(self_attention), Set(feed_forward), Set(norm1), Set(norm2))
  };
  using Parameters = ParametersOf<Tensor>;

  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = Stack::template kReadsInput<Gradients>;
  static constexpr Abilities kAbilities = Stack::kAbilities;
  using Tape = typename Stack::template TapeOf<Parameters>;
  using Scratch = typename Stack::template ScratchOf<Parameters>;
  using Stack::forward, Stack::backward;
  using typename Stack::InferenceScratch;
};

/// Every size and option of PyTorch's layer, with PyTorch's defaults except for dropout.
struct EncoderLayerShape {
  AttentionShape attention;  // self-attention. Its bias option applies to all linear layers and norms, its
                             // dropout to attention weights, branches and hidden features
  int d_ff;                  // features of a token inside the feed-forward network
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;  // of every branch
  double epsilon = 1e-5;                       // of the norms
};

namespace detail {

template <auto shape>
constexpr auto checked_encoder_shape() {
  constexpr AttentionShape kAttention = shape.attention;
  constexpr bool kPositive = kAttention.seq_len > 0 && kAttention.d_model > 0 && kAttention.num_heads > 0;
  static_assert(
      Holds<(kPositive && shape.d_ff > 0)>,
      "attune::EncoderLayer, DecoderLayer: seq_len, d_model, num_heads and d_ff must be positive; set "
      "{.attention = {.seq_len, .d_model, .num_heads}, .d_ff}");
  auto checked = shape;
  checked.d_ff = at_least_one(checked.d_ff);
  if constexpr (!kPositive) {
    checked.attention = {.seq_len = at_least_one(kAttention.seq_len),
                         .d_model = at_least_one(kAttention.d_model),
                         .num_heads = 1};
  }
  return checked;
}

/// The parts of an encoder or decoder layer.
template <auto encoder_shape, class Scalar>
struct EncoderParts {
  static constexpr auto shape = checked_encoder_shape<encoder_shape>();
  static constexpr AttentionShape kAttention = shape.attention;
  static constexpr int kSeqLen = kAttention.seq_len, kDModel = kAttention.d_model;
  using SelfAttention = MultiHeadAttention<kAttention, Scalar>;
  static_assert(
      Holds<SelfAttention::kSelfAttention>,
      "attune::EncoderLayer, DecoderLayer: kv_len, d_key and d_value of self-attention are seq_len and "
      "d_model; leave them out");
  using Network = FeedForward<FeedForwardShape{kSeqLen, kDModel, shape.d_ff, shape.activation,
                                               kAttention.bias, kAttention.dropout},
                              Scalar>;
  using Norm = LayerNorm<NormShape{kSeqLen, kDModel, shape.epsilon, true, kAttention.bias}, Scalar>;
  static constexpr BranchOptions kOptions{shape.norm, kAttention.dropout};
  using Layer = EncoderLayerOf<SelfAttention, Network, Norm, kOptions>;
};

}  // namespace detail

/// A transformer's encoder layer, as PyTorch's nn.TransformerEncoderLayer: self-attention and a feed-forward
/// network, each a residual branch with its norm, before or after it. x and y are [seq_len, d_model].
template <EncoderLayerShape shape, class ScalarType = float>
struct EncoderLayer : detail::EncoderParts<shape, ScalarType>::Layer {
  /// The same with another scalar.
  template <class Other>
  using WithScalar = EncoderLayer<shape, Other>;
  /// Runs token by token as this layer.
  using SteppedAs = EncoderLayer;
};

}  // namespace ATTUNE_NAMESPACE
