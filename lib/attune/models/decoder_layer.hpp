// One layer of a transformer decoder: causal self-attention, attention to the encoder's output, and a
// feed-forward network. Each is a residual branch with layer normalization (Vaswani et al., "Attention Is All
// You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    g = norm₂(h + C(h, m)),    y = norm₃(g + F(g))
//   norm before:   h = x + A(norm₁(x)),    g = h + C(norm₂(h), m),    y = g + F(norm₃(g))
//
// A is self-attention, C attends to the memory m as keys and values.
//
// In the Decoder of an EncoderDecoder (encoder_decoder.hpp) it is a layer as any other: the memory comes with
// the mask, which every model passes on.
//
//   DecoderLayer<{.attention = {.seq_len = 16, .d_model = 32, .num_heads = 4}, .d_ff = 64, .memory_len = 20}>
//   DecoderLayerOf<MultiHeadAttention<kSelf>, MultiHeadAttention<kCross>, SwiGlu<kNetwork>,
//                  RmsNorm<kNorm>>
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/execution/pass.hpp>
#include <attune/models/encoder_layer.hpp>

namespace ATTUNE_NAMESPACE {

/// The context of a decoder layer's call. One part is for its tokens, with the mask of self-attention. The
/// other is for the attention to its memory, with the tokens as queries and the memory as keys.
template <AnyContext TokensContext = Context<CausalMask>, AnyContext CrossContext = Context<>>
struct DecoderContext {
  TokensContext tokens;  // for self-attention, norms and the network
  CrossContext cross;    // for the attention to the memory
};
template <class TokensContext, class CrossContext>
DecoderContext(TokensContext, CrossContext) -> DecoderContext<TokensContext, CrossContext>;

namespace detail {

// The same with the memory, and the destination of its gradient.
template <class Given, class Memory, class DMemory>
struct ContextWithMemory : Given {
  Memory memory;
  DMemory d_memory;
};
template <class Given, class Memory, class DMemory = NoGradient>
ATTUNE_INLINE auto with_memory(const Given& context, const Memory& memory, const DMemory& d_memory = {}) {
  return ContextWithMemory<Given, Memory, DMemory>{context, memory, d_memory};
}

/// The mask of a decoder's tokens, together with the memory for its decoder layers and the mask of the
/// memory. A decoder layer adds its gradient of the memory to d_memory, and uses `own` on the way.
template <AttentionMask Mask, AttentionMask OfMemory, class Keys, class Memory, class DMemory>
struct MaskWithMemory : Mask {
  using GivenMemory = Memory;
  const OfMemory& memory_mask;
  Keys keys;  // valid tokens of the memory
  ConstView<Memory> memory;
  DMemory d_memory, own;
  [[nodiscard]] constexpr const Mask& of_tokens() const { return *this; }
};

}  // namespace detail

template <class Mask, class OfMemory, class Keys, class Memory, class DMemory>
inline constexpr bool kMasks<detail::MaskWithMemory<Mask, OfMemory, Keys, Memory, DMemory>> = kMasks<Mask>;

namespace detail {

template <BranchOptions options, class Norm, class SelfAttention, class CrossAttention, class Network>
using DecoderStack =
    ResidualStack<options, Norm, LayerBranch<SelfAttentionMember, SelfAttention>,
                  CrossAttentionBranch<CrossAttention>, LayerBranch<FeedForwardMember, Network>>;

}  // namespace detail

/// A decoder layer made of given parts. A, F and the norm are as in EncoderLayerOf. C is MultiHeadAttention,
/// or a type with the same calls, for [seq_len, d_model] queries and a [memory_len, …] memory. In training,
/// dropout applies to the outputs of the three branches, not inside them.
template <detail::CheckedLayer Attention, class MemoryAttention, detail::CheckedLayer NetworkLayer,
          detail::CheckedLayer NormLayer, BranchOptions options = BranchOptions{}>
struct DecoderLayerOf
    : detail::DecoderStack<options, NormLayer, Attention, MemoryAttention, NetworkLayer>,
      detail::Steps<DecoderLayerOf<Attention, MemoryAttention, NetworkLayer, NormLayer, options>> {
 private:
  using Stack = detail::DecoderStack<options, NormLayer, Attention, MemoryAttention, NetworkLayer>;

 public:
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
  static_assert(detail::Holds<std::is_same_v<Memory, typename CrossAttention::ValueInput>>,
                "attune::DecoderLayer: the memory gives keys and values; d_key and d_value must be equal");

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] detail::SetOfMember<SelfAttention, 0, Matrix, Vector> self_attention;
    [[no_unique_address]] detail::SetOfMember<CrossAttention, 1, Matrix, Vector> cross_attention;
    [[no_unique_address]] detail::SetOfMember<Network, 2, Matrix, Vector> feed_forward;
    [[no_unique_address]] detail::SetOfMember<Norm, 3, Matrix, Vector> norm1;
    [[no_unique_address]] detail::SetOfMember<Norm, 4, Matrix, Vector> norm2;
    [[no_unique_address]] detail::SetOfMember<Norm, 5, Matrix, Vector> norm3;
    ATTUNE_FIELDS(Set(self_attention), Set(cross_attention), Set(feed_forward), Set(norm1), Set(norm2),
                  Set(norm3))
  };
  using Parameters = ParametersOf<Tensor>;

  static constexpr bool kAttendsToMemory = true;  // the layer needs a memory beside its input
  static constexpr Abilities kAbilities =
      detail::with(Stack::kAbilities, &Abilities::scores, detail::kAbilities<Attention>.scores,
                   &Abilities::lanes, Lanes::kNone);  // one sequence at a time has a memory
  using Tape = typename Stack::template TapeOf<Parameters>;
  using Scratch = typename Stack::template ScratchOf<Parameters>;
  using typename Stack::InferenceScratch;

  /// Writes keys and values of memory[memory_len, …] to a cache, for all steps until the next memory.
  template <class Set = Parameters, class Model, CacheShape shape>
  static void remember(const Set& parameters, ConstView<Memory> memory, KeyValueCache<Model, shape>& cache) {
    Stack::template Stream<1, shape>::remember(parameters, memory, cache.memory);
  }

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model] and memory[memory_len, …]. `y` may be `x`
  /// if kAbilities allow it; it may not overlap the memory.
  template <class Set = Parameters, class Call = DecoderContext<>>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      InferenceScratch& scratch, const Call& context = {}) {
    Stack::forward(parameters, x, y, scratch, detail::with_memory(context, memory));
  }
  /// Training: the same, with dropout; the tape keeps what backward needs.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class AnyScratch,
            class Call = DecoderContext<>>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      AnyTape& tape, AnyScratch& scratch, const Call& context = {}) {
    Stack::forward(parameters, x, y, tape, scratch, detail::with_memory(context, memory));
  }
  /// dx[seq_len, d_model] and d_memory[memory_len, …] from dy[seq_len, d_model], overwritten, or NoGradient;
  /// gradients accumulate. Uses up the tape. `dx` may be `dy`. Pass forward's context; values that its masks
  /// hide have no influence.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class Dx, class DMemory, class Gradients,
            class AnyScratch, class Call = DecoderContext<>>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, AnyTape& tape,
                       ConstView<Output> dy, Dx&& dx, DMemory&& d_memory, Gradients& gradients,
                       AnyScratch& scratch, const Call& context = {}) {
    Stack::backward(parameters, x, tape, dy, dx, gradients, scratch,
                    detail::with_memory(context, memory, detail::sink<Memory>(d_memory)));
  }

  // ---- As a layer, inside the Decoder of an EncoderDecoder. ----

  /// Inference. `y` may be `x` if kAbilities allow it.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    with_memory<check_memory<Call>()>(
        context, [&](const auto& mask, const auto& contexts)
                     ATTUNE_INLINE_LAMBDA { forward(parameters, x, mask.memory, y, scratch, contexts); });
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class AnyScratch,
            AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, AnyTape& tape,
                      AnyScratch& scratch, const Call& context = {}) {
    with_memory<check_memory<Call>()>(context,
                                      [&](const auto& mask, const auto& contexts) ATTUNE_INLINE_LAMBDA {
                                        forward(parameters, x, mask.memory, y, tape, scratch, contexts);
                                      });
  }
  /// dx from dy, overwritten; gradients accumulate, also of the memory. Uses up the tape. `dx`
  /// may be `dy`.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class Dx, class Gradients,
            class AnyScratch, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, AnyTape& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, AnyScratch& scratch, const Call& context = {}) {
    with_memory<check_memory<Call>()>(
        context, [&](const auto& mask, const auto& contexts) ATTUNE_INLINE_LAMBDA {
          context.inside([&]() ATTUNE_INLINE_LAMBDA {
            backward(parameters, x, mask.memory, tape, dy, dx, mask.own, gradients, scratch, contexts);
          });
          detail::add_to<Memory>(contexts.cross.keys(), mask.own, mask.d_memory);
        });
  }

 private:
  // Whether the context has a memory of this layer's shape. EncoderDecoder tells of another shape.
  template <class Call>
  static constexpr bool check_memory() {
    static_assert(detail::Holds<(requires { typename Call::Mask::GivenMemory; })>,
                  "attune::DecoderLayer: the layer has no memory; put it into the Decoder of "
                  "EncoderDecoder<Encoder, Decoder>, or pass the memory to its functions");
    return requires { requires std::is_same_v<typename Call::Mask::GivenMemory, Memory>; };
  }
  // Calls body(mask, contexts) with the mask, which has the memory, and the contexts of a call by hand.
  template <bool given>
  ATTUNE_INLINE static void with_memory(const auto& context, const auto& body) {
    if constexpr (given) {
      const auto& mask = context.mask();
      using OfMemory = std::remove_cvref_t<decltype(mask.memory_mask)>;
      if constexpr (kMasks<OfMemory>) {
        detail::check_fit<detail::kAbilities<CrossAttention>.scores, OfMemory>();
      }
      body(mask, DecoderContext{context.with_mask(mask.of_tokens()),
                                context.unmasked().with_keys(mask.keys).with_mask(mask.memory_mask)});
    }
  }
};

/// Every size and option of PyTorch's layer, with PyTorch's defaults except for dropout.
struct DecoderLayerShape {
  AttentionShape attention;  // self-attention; bias and dropout as in EncoderLayerShape. Attention to the
                             // memory has the same shape, without positions, window and biases
  int d_ff;                  // features of a token inside the feed-forward network
  int memory_len = attention.seq_len;  // tokens of the memory, of d_model features
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;  // of every branch
  double epsilon = 1e-5;                       // of the norms
};

namespace detail {

/// The shape of attention to a memory, from the shape of self-attention.
constexpr AttentionShape cross_attention(AttentionShape shape, int memory_len) {
  constexpr AttentionShape kDefault{};
  shape.kv_len = memory_len;
  shape.rotary_dim = kDefault.rotary_dim;
  shape.rotary_pairs = kDefault.rotary_pairs;
  shape.rotary_base = kDefault.rotary_base;
  shape.window = kDefault.window;
  shape.alibi = kDefault.alibi;
  shape.relative_bias = kDefault.relative_bias;
  shape.offset = kDefault.offset;
  return shape;
}

template <DecoderLayerShape shape, class Scalar>
struct DecoderParts {
  static_assert(Holds<(shape.memory_len > 0)>, "attune::DecoderLayer: memory_len must be positive");
  using Parts = EncoderParts<shape, Scalar>;
  using CrossAttention = MultiHeadAttention<cross_attention(shape.attention, shape.memory_len), Scalar>;
  using Layer = DecoderLayerOf<typename Parts::SelfAttention, CrossAttention, typename Parts::Network,
                               typename Parts::Norm, Parts::kOptions>;
};

}  // namespace detail

/// A transformer's decoder layer, as PyTorch's nn.TransformerDecoderLayer: causal self-attention, attention
/// to the encoder's output, and a feed-forward network, each a residual branch with its norm.
template <DecoderLayerShape shape, class ScalarType = float>
struct DecoderLayer : detail::DecoderParts<shape, ScalarType>::Layer {
  /// The same with another scalar.
  template <class Other>
  using WithScalar = DecoderLayer<shape, Other>;
  /// Runs token by token as this layer.
  using SteppedAs = DecoderLayer;
};

/// The context of a decoder layer with masks of self-attention and of its memory. The masks must outlive it.
template <class Layer, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask,
          class Slices = RunToCompletion>
[[nodiscard]] constexpr auto decoder_context_for(const Mask& mask ATTUNE_LIFETIME_BOUND,
                                                 const MemoryMask& memory_mask ATTUNE_LIFETIME_BOUND,
                                                 const Slices& slices = {}) {
  const auto tokens = detail::valid_tokens<Layer::Input::rows, Layer::kAbilities.takes_length>(mask);
  const auto keys = detail::valid_tokens<Layer::Memory::rows, Layer::kAbilities.takes_length>(memory_mask);
  return DecoderContext{Context(mask, slices, tokens, tokens), Context(memory_mask, slices, tokens, keys)};
}
/// Inference of a decoder layer, as of other layers (execution/pass.hpp), with a mask for self-attention and
/// one for attention to memory[memory_len, …].
template <class Layer, class Set = typename Layer::Parameters, AttentionMask Mask = CausalMask,
          AttentionMask MemoryMask = NoMask>
void infer(const Set& parameters, ConstView<typename Layer::Input> x,
           ConstView<typename Layer::CrossAttention::KeyInput> memory, View<typename Layer::Output> y,
           typename Layer::InferenceScratch& scratch, const Mask& mask = {},
           const MemoryMask& memory_mask = {}) {
  const auto context = decoder_context_for<Layer>(mask, memory_mask);
  Layer::forward(parameters, x, memory, y, scratch, context);
  detail::clear_behind(context.tokens, y);
}
/// Training: the same; the tape keeps what backward needs.
template <class Layer, class Set = typename Layer::Parameters, class Tape, class Scratch,
          AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask>
void forward(const Set& parameters, ConstView<typename Layer::Input> x,
             ConstView<typename Layer::CrossAttention::KeyInput> memory, View<typename Layer::Output> y,
             Tape& tape, Scratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {}) {
  const auto context = decoder_context_for<Layer>(mask, memory_mask);
  Layer::forward(parameters, x, memory, y, tape, scratch, context);
  detail::clear_behind(context.tokens, y);
}
/// dx and d_memory from dy, overwritten, or NoGradient; gradients accumulate. The masks are forward's.
template <class Layer, class Set = typename Layer::Parameters, class Tape, class Dx, class DMemory,
          class Gradients, class Scratch, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask>
void backward(const Set& parameters, ConstView<typename Layer::Input> x,
              ConstView<typename Layer::CrossAttention::KeyInput> memory, Tape& tape,
              ConstView<typename Layer::Output> dy, Dx&& dx, DMemory&& d_memory, Gradients& gradients,
              Scratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {}) {
  const auto context = decoder_context_for<Layer>(mask, memory_mask);
  const auto to_x = detail::sink<typename Layer::Input>(dx);
  Layer::backward(parameters, x, memory, tape, dy, to_x, d_memory, gradients, scratch, context);
  detail::clear_behind(context.tokens, to_x);
}

}  // namespace ATTUNE_NAMESPACE
