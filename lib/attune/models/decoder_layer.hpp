// One layer of a transformer decoder: causal self-attention, attention to the encoder's output, and a
// feed-forward network, each in a residual branch with layer normalisation (Vaswani et al., "Attention Is All
// You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    g = norm₂(h + C(h, m)),    y = norm₃(g + F(g))
//   norm before:   h = x + A(norm₁(x)),    g = h + C(norm₂(h), m),    y = g + F(norm₃(g))
//
// A is self-attention, C attends to the memory m as keys and values.
//
//   DecoderLayer<{.seq_len = 16, .d_model = 32, .num_heads = 4, .d_ff = 64, .memory_len = 20}>   PyTorch's
//   layer DecoderLayerOf<MultiHeadAttention<kSelf>, MultiHeadAttention<kCross>, SwiGlu<kNetwork>,
//   RmsNorm<kNorm>>
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/core/true_length.hpp>
#include <attune/models/encoder_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// A decoder layer of given parts: A, F and the norm as of EncoderLayerOf; C is MultiHeadAttention, or what
/// is called as it is, of [seq_len, d_model] queries and a [memory_len, …] memory. With dropout, in training,
/// what the three branches give is dropped; what happens inside of them is their own.
template <detail::CheckedLayer Attention, class MemoryAttention, detail::CheckedLayer NetworkLayer,
          detail::CheckedLayer NormLayer, BranchOptions options = BranchOptions{}>
struct DecoderLayerOf
    : detail::Steps<DecoderLayerOf<Attention, MemoryAttention, NetworkLayer, NormLayer, options>> {
  using Scalar = typename Attention::Scalar;
  template <class Other>
  using WithScalar = DecoderLayerOf<typename detail::WithScalarOf<Attention, Other>::type,
                                    typename detail::WithScalarOf<MemoryAttention, Other>::type,
                                    typename detail::WithScalarOf<NetworkLayer, Other>::type,
                                    typename detail::WithScalarOf<NormLayer, Other>::type, options>;
  using SelfAttention = Attention;
  using CrossAttention = MemoryAttention;
  using Network = NetworkLayer;
  using Norm = NormLayer;
  using Input = typename Attention::Input;
  using Memory = typename CrossAttention::KeyInput;
  using Output = Input;
  static constexpr std::uint32_t kFingerprint =
      fingerprint(options.norm, options.dropout, kFingerprintOf<SelfAttention>,
                  kFingerprintOf<CrossAttention>, kFingerprintOf<Network>, kFingerprintOf<Norm>);
  static_assert(std::is_same_v<Memory, typename CrossAttention::ValueInput>,
                "attune::DecoderLayer: the memory is key and value; d_key and d_value must be equal");
  static_assert(detail::kFits<Attention, CrossAttention> && detail::kFits<CrossAttention, Network> &&
                detail::kFits<Network, Norm> && detail::kFits<Norm, Attention>);

  static constexpr bool kUpdatesInBackward =
      detail::kUpdatesInBackward<Attention> && detail::kUpdatesInBackward<MemoryAttention> &&
      detail::kUpdatesInBackward<NetworkLayer> && detail::kUpdatesInBackward<NormLayer>;
  static constexpr bool kRunsInLockstep =
      detail::kRunsInLockstep<Attention> && detail::kRunsInLockstep<MemoryAttention> &&
      detail::kRunsInLockstep<NetworkLayer> && detail::kRunsInLockstep<NormLayer>;
  static constexpr bool kTakesOneByOne =  // the others are asked for more
      detail::kRunsInLockstep<MemoryAttention> && detail::kRunsInLockstep<NormLayer>;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    [[no_unique_address]] detail::SetOfMember<SelfAttention, 0, Matrix, Vector> self_attention;
    [[no_unique_address]] detail::SetOfMember<CrossAttention, 1, Matrix, Vector> cross_attention;
    [[no_unique_address]] detail::SetOfMember<Network, 2, Matrix, Vector> feed_forward;
    [[no_unique_address]] detail::SetOfMember<Norm, 3, Matrix, Vector> norm1;
    [[no_unique_address]] detail::SetOfMember<Norm, 4, Matrix, Vector> norm2;
    [[no_unique_address]] detail::SetOfMember<Norm, 5, Matrix, Vector> norm3;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_self{"self_attention", parent}, of_cross{"cross_attention", parent},
          of_network{"feed_forward", parent}, of_norm1{"norm1", parent}, of_norm2{"norm2", parent},
          of_norm3{"norm3", parent};
      SelfAttention::Parameters::visit(visitor, &of_self, sets.self_attention...);
      CrossAttention::Parameters::visit(visitor, &of_cross, sets.cross_attention...);
      Network::Parameters::visit(visitor, &of_network, sets.feed_forward...);
      Norm::Parameters::visit(visitor, &of_norm1, sets.norm1...);
      Norm::Parameters::visit(visitor, &of_norm2, sets.norm2...);
      Norm::Parameters::visit(visitor, &of_norm3, sets.norm3...);
    }
    /// MultiheadAttentionDefault gives PyTorch's nn.TransformerDecoderLayer.
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(self_attention, initialiser, rng);
      attune::initialise(cross_attention, initialiser, rng);
      attune::initialise(feed_forward, initialiser, rng);
      attune::initialise(norm1, initialiser, rng);
      attune::initialise(norm2, initialiser, rng);
      attune::initialise(norm3, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;

 private:
  struct Sets {
    template <int index>
    static auto& branch(auto& set) {
      if constexpr (index == 0) {
        return set.self_attention;
      } else if constexpr (index == 1) {
        return set.cross_attention;
      } else {
        return set.feed_forward;
      }
    }
    template <int index>
    static auto& norm(auto& set) {
      if constexpr (index == 0) {
        return set.norm1;
      } else if constexpr (index == 1) {
        return set.norm2;
      } else {
        return set.norm3;
      }
    }
  };
  using Branches =
      detail::ResidualBranches<options, Sets, Norm, detail::LayerBranch<SelfAttention>,
                               detail::MemoryBranch<CrossAttention>, detail::LayerBranch<Network>>;
  template <class Mask, class MemoryMask, class Pieces, class MemoryPieces, class DMemory = NoGradient>
  struct Context {
    ConstView<Memory> memory;
    const Mask& mask;
    const MemoryMask& memory_mask;
    const Pieces& pieces;               // of the tokens
    const MemoryPieces& memory_pieces;  // of the memory's
    DMemory d_memory = {};

    ATTUNE_INLINE decltype(auto) pieces_of_both() const {
      if constexpr (detail::kHasLength<Pieces> || detail::kHasLength<MemoryPieces>) {
        return WithMemory<Pieces, MemoryPieces>(pieces, memory_pieces);
      } else {
        return (pieces);
      }
    }
  };
  // Whether tokens behind a length are left out.
  static constexpr bool kTakesLengths = detail::kTakesLength<SelfAttention> &&
                                        detail::kTakesLength<Network> && detail::kTakesLength<Norm> &&
                                        requires {
    requires CrossAttention::kTakesLengths;
  };
  // The pieces of tokens, or of a memory, of which the mask says how many there are.
  template <class Matrix, class Mask, class Pieces>
  ATTUNE_INLINE static auto pieces_of(const Mask& mask, const Pieces& pieces) {
    if constexpr (kTakesLengths) {
      return detail::first_tokens<Matrix::rows>(mask, pieces);
    } else {
      return pieces;
    }
  }

 public:
  /// What backward needs beside x and the memory.
  template <class Gradients>
  struct TapeOf : Branches::Tape {
    [[no_unique_address]] detail::TapeOf<SelfAttention, decltype(Gradients::self_attention)> self_attention;
    [[no_unique_address]] detail::TapeOf<CrossAttention, decltype(Gradients::cross_attention)>
        cross_attention;
    [[no_unique_address]] detail::TapeOf<Network, decltype(Gradients::feed_forward)> feed_forward;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(
        Branches::kDrops || detail::kDropsIn<typename SelfAttention::Tape> ||
        detail::kDropsIn<typename CrossAttention::Tape> || detail::kDropsIn<typename Network::Tape>) {
      detail::for_each_dropout(visitor, this->dropout, feed_forward, self_attention, cross_attention);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf : Branches::template ScratchOf<Gradients> {};
  using Scratch = ScratchOf<Parameters>;
  using InferenceScratch = typename Branches::InferenceScratch;

  /// Token by token (core/stream.hpp), causal, of a memory that is remembered first: without one a step
  /// answers kNothingRemembered. A step takes the
  /// memory's mask behind its scratch; the number of a query is its position, so a mask that is made for a
  /// seq_len is made for the cache's capacity.
  ///
  ///   Decoder::remember(parameters, memory, cache);
  ///   status = Decoder::step(parameters, token, y, cache, scratch[, memory_mask]);
  template <CacheShape cache>
  struct Stream {
    /// Of the attention to the encoder's output.
    using MemoryStream = detail::MemoryStream<CrossAttention>;
    using Memory =
        detail::Members<typename detail::StreamOf<SelfAttention, cache>::Memory,
                        typename MemoryStream::Memory, typename detail::StreamOf<Network, cache>::Memory>;
    static constexpr std::uint64_t kMostTokens =
        (std::min)(detail::kMostTokens<SelfAttention, cache>, detail::kMostTokens<Network, cache>);
    template <int tokens>
    using Branches =
        detail::ResidualBranches<options, Sets,
                                 typename detail::TokenwiseStream<Norm>::template Of<tokens>::type,
                                 detail::StreamBranch<0, SelfAttention, cache, tokens>,
                                 detail::MemoryStreamBranch<1, CrossAttention, tokens, kMostTokens>,
                                 detail::StreamBranch<2, Network, cache, tokens>>;
    template <int tokens>
    using Scratch = typename Branches<tokens>::InferenceScratch;
    /// kOk where remember() has been called.
    static Status ready(const Memory& memory) { return MemoryStream::ready(detail::member<1>(memory)); }
    template <int tokens, AttentionMask MemoryMask = NoMask>
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<DecoderLayerOf, tokens>> x,
                     View<detail::StepOutput<DecoderLayerOf, tokens>> y, Memory& memory,
                     Scratch<tokens>& scratch, const MemoryMask& memory_mask = {}) {
      Branches<tokens>::infer(
          parameters, x, y, scratch,
          detail::MaskedStreamContext<Memory, MemoryMask>{{position, memory}, memory_mask});
    }
  };
  /// Keys and values of memory[memory_len, …] to a cache, for all steps until another memory is remembered.
  template <class Set = Parameters, class Model, CacheShape shape>
  static void remember(const Set& parameters, ConstView<Memory> memory, KeyValueCache<Model, shape>& cache) {
    detail::MemoryStream<CrossAttention>::remember(parameters.cross_attention, memory,
                                                   detail::member<1>(cache.memory));
  }

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model] and memory[memory_len, …]; `mask` is
  /// self-attention's, `memory_mask` the other's. `y` may not overlap them.
  template <class Set = Parameters, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask,
            AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      InferenceScratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {},
                      const Pieces& pieces = {}) {
    const auto of_tokens = pieces_of<Input>(mask, pieces);
    const auto of_memory = pieces_of<Memory>(memory_mask, pieces);
    Branches::infer(parameters, x, y, scratch,
                    Context<Mask, MemoryMask, decltype(of_tokens), decltype(of_memory)>{
                        memory, mask, memory_mask, of_tokens, of_memory});
    pieces([&]() ATTUNE_INLINE_LAMBDA { detail::clear_behind(of_tokens, y); });
  }
  /// Training: the same, with dropout; the tape keeps what backward needs.
  template <class Set = Parameters, class Kept, AttentionMask Mask = CausalMask,
            AttentionMask MemoryMask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      TapeOf<Kept>& tape, ScratchOf<Kept>& scratch, const Mask& mask = {},
                      const MemoryMask& memory_mask = {}, const Pieces& pieces = {}) {
    const auto of_tokens = pieces_of<Input>(mask, pieces);
    const auto of_memory = pieces_of<Memory>(memory_mask, pieces);
    Branches::forward(parameters, x, y, tape, scratch,
                      Context<Mask, MemoryMask, decltype(of_tokens), decltype(of_memory)>{
                          memory, mask, memory_mask, of_tokens, of_memory});
    pieces([&]() ATTUNE_INLINE_LAMBDA { detail::clear_behind(of_tokens, y); });
  }
  /// dx[seq_len, d_model] and d_memory[memory_len, …] from dy[seq_len, d_model], overwritten, or NoGradient;
  /// gradients accumulate. The tape is used up. `dx` may be `dy`. The masks are forward's: what they hide has
  /// no influence, whatever it holds.
  template <class Set = Parameters, class Kept, class Dx, class DMemory, class Gradients,
            AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask, AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory,
                       TapeOf<Kept>& tape, ConstView<Output> dy, Dx&& dx, DMemory&& d_memory,
                       Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {},
                       const MemoryMask& memory_mask = {}, const Pieces& pieces = {}) {
    const auto to_memory = detail::sink<Memory>(d_memory);
    const auto of_tokens = pieces_of<Input>(mask, pieces);
    const auto of_memory = pieces_of<Memory>(memory_mask, pieces);
    const Context<Mask, MemoryMask, decltype(of_tokens), decltype(of_memory),
                  std::remove_const_t<decltype(to_memory)>>
        context{memory, mask, memory_mask, of_tokens, of_memory, to_memory};
    const auto to_x = detail::sink<Input>(dx);
    Branches::backward(parameters, x, tape, dy, to_x, gradients, scratch, context);
    detail::clear_behind(of_tokens, to_x);
    detail::clear_behind(of_memory, to_memory);
  }
};

/// Every size and option of PyTorch's layer; the defaults are PyTorch's, but for dropout.
struct DecoderLayerShape {
  int seq_len;  // tokens
  int d_model;  // features of a token, and of one of the memory
  int num_heads;
  int d_ff;                  // features of a token inside the feed-forward network
  int memory_len = seq_len;  // tokens of the memory
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;  // of the three branches
  double epsilon = 1e-5;                       // of the normalisations
  bool bias = true;                            // of linear layers and normalisations
  double dropout = 0;        // probability, in training: of attention weights, branches and hidden features
  int rotary_dim = 0;        // of a head's queries and keys in self-attention, rotated by position; 0: none
  bool keep_weights = true;  // of both attentions, from forward to backward; false: computed once more
  // As of AttentionShape: of both attentions,
  int num_kv_heads = num_heads;
  double softcap = 0;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double query_key_epsilon = 1e-5;
  // and of self-attention alone.
  RotaryPairs rotary_pairs = RotaryPairs::kHalves;
  double rotary_base = 10'000;
  AttentionWindow window = {};
  bool alibi = false;
};

namespace detail {

constexpr EncoderLayerShape encoder_shape(const DecoderLayerShape& shape) {
  return {.seq_len = shape.seq_len,
          .d_model = shape.d_model,
          .num_heads = shape.num_heads,
          .d_ff = shape.d_ff,
          .activation = shape.activation,
          .norm = shape.norm,
          .epsilon = shape.epsilon,
          .bias = shape.bias,
          .dropout = shape.dropout,
          .rotary_dim = shape.rotary_dim,
          .keep_weights = shape.keep_weights,
          .num_kv_heads = shape.num_kv_heads,
          .rotary_pairs = shape.rotary_pairs,
          .rotary_base = shape.rotary_base,
          .window = shape.window,
          .alibi = shape.alibi,
          .softcap = shape.softcap,
          .query_key_norm = shape.query_key_norm,
          .query_key_epsilon = shape.query_key_epsilon};
}

template <DecoderLayerShape shape, class Scalar>
struct DecoderParts : EncoderParts<encoder_shape(shape), Scalar> {
  static_assert(shape.memory_len > 0, "attune::DecoderLayer: memory_len must be positive");
  using CrossAttention = MultiHeadAttention<AttentionShape{.seq_len = shape.seq_len,
                                                           .d_model = shape.d_model,
                                                           .num_heads = shape.num_heads,
                                                           .num_kv_heads = shape.num_kv_heads,
                                                           .kv_len = shape.memory_len,
                                                           .bias = shape.bias,
                                                           .dropout = shape.dropout,
                                                           .keep_weights = shape.keep_weights,
                                                           .softcap = shape.softcap,
                                                           .query_key_norm = shape.query_key_norm,
                                                           .query_key_epsilon = shape.query_key_epsilon},
                                            Scalar>;
};

}  // namespace detail

/// A transformer's decoder layer, as PyTorch's nn.TransformerDecoderLayer: causal self-attention, attention
/// to the encoder's output, and a feed-forward network, each a residual branch with its norm.
template <DecoderLayerShape shape, class ScalarType = float>
struct DecoderLayer : DecoderLayerOf<typename detail::DecoderParts<shape, ScalarType>::SelfAttention,
                                     typename detail::DecoderParts<shape, ScalarType>::CrossAttention,
                                     typename detail::DecoderParts<shape, ScalarType>::Network,
                                     typename detail::DecoderParts<shape, ScalarType>::Norm,
                                     BranchOptions{shape.norm, shape.dropout}> {
  /// The same with another scalar.
  template <class Other>
  using WithScalar = DecoderLayer<shape, Other>;
  /// Runs token by token as this layer.
  using SteppedAs = DecoderLayer;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
