// One layer of a transformer encoder: self-attention, then a feed-forward network, each in a residual branch
// with layer normalisation (Vaswani et al., "Attention Is All You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    y = norm₂(h + F(h))
//   norm before:   h = x + A(norm₁(x)),    y = h + F(norm₂(h))
//
//   EncoderLayer<{.seq_len = 16, .d_model = 32, .num_heads = 4, .d_ff = 64}>          PyTorch's layer
//   EncoderLayerOf<MultiHeadAttention<kShape>, SwiGlu<kNetwork>, RmsNorm<kNorm>>      of parts of one's
//   choice
#pragma once

#include <attune/core/roles.hpp>
#include <attune/models/transformer_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// An encoder layer of given parts: A, F and the norm are layers (core/layer.hpp) of [seq_len, d_model]
/// tokens to as many, library's or one's own. The norm has recompute(parameters, x, tape, y) beside. With
/// dropout, in training, what A and F give is dropped; what happens inside of them is their own.
template <detail::CheckedLayer Attention, detail::CheckedLayer NetworkLayer, detail::CheckedLayer NormLayer,
          BranchOptions options = BranchOptions{}>
struct EncoderLayerOf : detail::Steps<EncoderLayerOf<Attention, NetworkLayer, NormLayer, options>> {
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
  static constexpr std::uint32_t kFingerprint =
      fingerprint(options.norm, options.dropout, kFingerprintOf<SelfAttention>, kFingerprintOf<Network>,
                  kFingerprintOf<Norm>);
  static_assert(detail::kFits<Attention, Network> && detail::kFits<Network, Norm> &&
                detail::kFits<Norm, Attention>);

  static constexpr bool kUpdatesInBackward = detail::kUpdatesInBackward<Attention> &&
                                             detail::kUpdatesInBackward<NetworkLayer> &&
                                             detail::kUpdatesInBackward<NormLayer>;
  static constexpr bool kRunsInLockstep = detail::kRunsInLockstep<Attention> &&
                                          detail::kRunsInLockstep<NetworkLayer> &&
                                          detail::kRunsInLockstep<NormLayer>;
  static constexpr bool kTakesOneByOne = detail::kRunsInLockstep<NormLayer>;  // it is asked for more

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    [[no_unique_address]] detail::SetOfMember<SelfAttention, 0, Matrix, Vector> self_attention;
    [[no_unique_address]] detail::SetOfMember<Network, 1, Matrix, Vector> feed_forward;
    [[no_unique_address]] detail::SetOfMember<Norm, 2, Matrix, Vector> norm1;
    [[no_unique_address]] detail::SetOfMember<Norm, 3, Matrix, Vector> norm2;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_attention{"self_attention", parent}, of_network{"feed_forward", parent},
          of_norm1{"norm1", parent}, of_norm2{"norm2", parent};
      SelfAttention::Parameters::visit(visitor, &of_attention, sets.self_attention...);
      Network::Parameters::visit(visitor, &of_network, sets.feed_forward...);
      Norm::Parameters::visit(visitor, &of_norm1, sets.norm1...);
      Norm::Parameters::visit(visitor, &of_norm2, sets.norm2...);
    }
    /// MultiheadAttentionDefault gives PyTorch's nn.TransformerEncoderLayer.
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(self_attention, initialiser, rng);
      attune::initialise(feed_forward, initialiser, rng);
      attune::initialise(norm1, initialiser, rng);
      attune::initialise(norm2, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;

 private:
  struct Sets {
    template <int index>
    static auto& branch(auto& set) {
      if constexpr (index == 0) {
        return set.self_attention;
      } else {
        return set.feed_forward;
      }
    }
    template <int index>
    static auto& norm(auto& set) {
      if constexpr (index == 0) {
        return set.norm1;
      } else {
        return set.norm2;
      }
    }
  };

 public:
  using Branches = detail::ResidualBranches<options, Sets, Norm, detail::LayerBranch<SelfAttention>,
                                            detail::LayerBranch<Network>>;
  /// What its branches are called with.
  template <class Mask, class Pieces>
  struct Context {
    const Mask& mask;      // of the attention
    const Pieces& pieces;  // of the call
  };
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = Branches::template kReadsLayerInput<Gradients>;
  static constexpr bool kTakesMask = true;
  static constexpr bool kTakesLength =
      detail::kTakesLength<SelfAttention> && detail::kTakesLength<Network> && detail::kTakesLength<Norm>;
  static constexpr bool kGradientMayBeInput =
      Branches::kGradientMayBeLayerInput;  // not with ParameterUpdates
  /// What backward needs beside x.
  template <class Gradients>
  struct TapeOf : Branches::Tape {
    [[no_unique_address]] detail::TapeOf<SelfAttention, decltype(Gradients::self_attention)> self_attention;
    [[no_unique_address]] detail::TapeOf<Network, decltype(Gradients::feed_forward)> feed_forward;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(
        Branches::kDrops || detail::kDropsIn<typename SelfAttention::Tape> ||
        detail::kDropsIn<typename Network::Tape>) {
      detail::for_each_dropout(visitor, this->dropout, feed_forward, self_attention);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf : Branches::template ScratchOf<Gradients> {};
  using Scratch = ScratchOf<Parameters>;
  using InferenceScratch = typename Branches::InferenceScratch;

  /// Token by token (core/stream.hpp), causal.
  template <CacheShape cache>
  struct Stream {
    using Memory = detail::Members<typename detail::StreamOf<SelfAttention, cache>::Memory,
                                   typename detail::StreamOf<Network, cache>::Memory>;
    static constexpr std::uint64_t kMostTokens =
        (std::min)(detail::kMostTokens<SelfAttention, cache>, detail::kMostTokens<Network, cache>);
    template <int tokens>
    using Branches =
        detail::ResidualBranches<options, Sets,
                                 typename detail::TokenwiseStream<Norm>::template Of<tokens>::type,
                                 detail::StreamBranch<0, SelfAttention, cache, tokens>,
                                 detail::StreamBranch<1, Network, cache, tokens>>;
    template <int tokens>
    using Scratch = typename Branches<tokens>::InferenceScratch;
    template <int tokens>
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<EncoderLayerOf, tokens>> x,
                     View<detail::StepOutput<EncoderLayerOf, tokens>> y, Memory& memory,
                     Scratch<tokens>& scratch) {
      Branches<tokens>::infer(parameters, x, y, scratch, detail::StreamContext<Memory>{position, memory});
    }
  };

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model]; `mask` is attention's. `y` may not overlap `x`.
  template <class Set = Parameters, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Mask& mask = {}, const Pieces& pieces = {}) {
    if constexpr (detail::kBeginsLength<Mask, Pieces>) {
      return detail::forward_of_length<EncoderLayerOf>(mask, pieces, parameters, x, y, scratch);
    } else {
      Branches::infer(parameters, x, y, scratch, Context<Mask, Pieces>{mask, pieces});
    }
  }
  /// Training: the same, with dropout; the tape keeps what backward needs. `y` may not overlap `x`.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Kept>& tape,
                      ScratchOf<Kept>& scratch, const Mask& mask = {}, const Pieces& pieces = {}) {
    if constexpr (detail::kBeginsLength<Mask, Pieces>) {
      return detail::forward_of_length<EncoderLayerOf>(mask, pieces, parameters, x, y, tape, scratch);
    } else {
      Branches::forward(parameters, x, y, tape, scratch, Context<Mask, Pieces>{mask, pieces});
    }
  }
  /// dx[seq_len, d_model] from dy[seq_len, d_model], overwritten; gradients accumulate. The tape is used up.
  /// `dx` may be `dy`. With a mask, what it hides has no influence, whatever it holds.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AttentionMask Mask = NoMask,
            AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {},
                       const Pieces& pieces = {}) {
    if constexpr (detail::kBeginsLength<Mask, Pieces>) {
      detail::backward_of_length<EncoderLayerOf>(mask, pieces, parameters, x, tape, dy,
                                                 detail::sink<Input>(dx), gradients, scratch);
    } else {
      Branches::backward(parameters, x, tape, dy, detail::sink<Input>(dx), gradients, scratch,
                         Context<Mask, Pieces>{mask, pieces});
    }
  }
};

/// Every size and option of PyTorch's layer; the defaults are PyTorch's, but for dropout.
struct EncoderLayerShape {
  int seq_len;  // tokens
  int d_model;  // features of a token
  int num_heads;
  int d_ff;  // features of a token inside the feed-forward network
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;  // of both branches
  double epsilon = 1e-5;                       // of the normalisations
  bool bias = true;                            // of linear layers and normalisations
  double dropout = 0;        // probability, in training: of attention weights, branches and hidden features
  int rotary_dim = 0;        // features of a head's queries and keys that are rotated by position; 0: none
  bool keep_weights = true;  // of attention, from forward to backward; false: computed once more
  // As of AttentionShape.
  int num_kv_heads = num_heads;
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  double rotary_base = 10'000;
  AttentionWindow window = {};
  bool alibi = false;
  double softcap = 0;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double query_key_epsilon = 1e-5;
};

namespace detail {

template <EncoderLayerShape shape, class Scalar>
struct EncoderParts {
  static_assert(
      shape.seq_len > 0 && shape.d_model > 0 && shape.num_heads > 0 && shape.d_ff > 0,
      "attune::EncoderLayer: seq_len, d_model, num_heads and d_ff must be positive; set all four in "
      "EncoderLayerShape");
  using SelfAttention = MultiHeadAttention<AttentionShape{.seq_len = shape.seq_len,
                                                          .d_model = shape.d_model,
                                                          .num_heads = shape.num_heads,
                                                          .num_kv_heads = shape.num_kv_heads,
                                                          .bias = shape.bias,
                                                          .rotary_dim = shape.rotary_dim,
                                                          .rotary_pairs = shape.rotary_pairs,
                                                          .rotary_base = shape.rotary_base,
                                                          .dropout = shape.dropout,
                                                          .keep_weights = shape.keep_weights,
                                                          .window = shape.window,
                                                          .alibi = shape.alibi,
                                                          .softcap = shape.softcap,
                                                          .query_key_norm = shape.query_key_norm,
                                                          .query_key_epsilon = shape.query_key_epsilon},
                                           Scalar>;
  using Network = FeedForward<FeedForwardShape{shape.seq_len, shape.d_model, shape.d_ff, shape.activation,
                                               shape.bias, shape.dropout},
                              Scalar>;
  using Norm = LayerNorm<NormShape{shape.seq_len, shape.d_model, shape.epsilon, true, shape.bias}, Scalar>;
};

}  // namespace detail

/// A transformer's encoder layer, as PyTorch's nn.TransformerEncoderLayer: self-attention and a feed-forward
/// network, each a residual branch with its norm, before or after it. x and y are [seq_len, d_model].
template <EncoderLayerShape shape, class ScalarType = float>
struct EncoderLayer : EncoderLayerOf<typename detail::EncoderParts<shape, ScalarType>::SelfAttention,
                                     typename detail::EncoderParts<shape, ScalarType>::Network,
                                     typename detail::EncoderParts<shape, ScalarType>::Norm,
                                     BranchOptions{shape.norm, shape.dropout}> {
  /// The same with another scalar.
  template <class Other>
  using WithScalar = EncoderLayer<shape, Other>;
  /// Runs token by token as this layer.
  using SteppedAs = EncoderLayer;
};

namespace detail {

template <class SelfAttention, class Network, class Norm, BranchOptions options>
inline constexpr bool kRunsByBranches<EncoderLayerOf<SelfAttention, Network, Norm, options>> = true;
template <EncoderLayerShape shape, class Scalar>
inline constexpr bool kRunsByBranches<EncoderLayer<shape, Scalar>> = true;

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
