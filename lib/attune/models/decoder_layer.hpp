// One layer of a transformer decoder: causal self-attention, attention to the encoder's output, and a
// feed-forward network, each in a residual branch with layer normalization (Vaswani et al., "Attention Is All
// You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    g = norm₂(h + C(h, m)),    y = norm₃(g + F(g))
//   norm before:   h = x + A(norm₁(x)),    g = h + C(norm₂(h), m),    y = g + F(norm₃(g))
//
// A is self-attention, C attends to the memory m as keys and values.
//
//   DecoderLayer<{.attention = {.seq_len = 16, .d_model = 32, .num_heads = 4}, .d_ff = 64, .memory_len = 20}>
//   DecoderLayerOf<MultiHeadAttention<kSelf>, MultiHeadAttention<kCross>, SwiGlu<kNetwork>,
//   RmsNorm<kNorm>>
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/execution/valid_length.hpp>
#include <attune/models/encoder_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

template <BranchOptions options, class Norm, class SelfAttention, class CrossAttention, class Network>
using DecoderStack = ResidualStack<options, Norm, LayerBranch<SelfAttentionMember, SelfAttention>,
                                   MemoryBranch<CrossAttention>, LayerBranch<FeedForwardMember, Network>>;

}  // namespace detail

/// A decoder layer of given parts: A, F and the norm as of EncoderLayerOf; C is MultiHeadAttention, or what
/// is called as it is, of [seq_len, d_model] queries and a [memory_len, …] memory. With dropout, in training,
/// what the three branches give is dropped; what happens inside of them is their own.
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
  static_assert(std::is_same_v<Memory, typename CrossAttention::ValueInput>,
                "attune::DecoderLayer: the memory is key and value; d_key and d_value must be equal");

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

  using Tape = typename Stack::template TapeOf<Parameters>;
  using Scratch = typename Stack::template ScratchOf<Parameters>;
  using typename Stack::InferenceScratch;

  /// Keys and values of memory[memory_len, …] to a cache, for all steps until another memory is remembered.
  template <class Set = Parameters, class Model, CacheShape shape>
  static void remember(const Set& parameters, ConstView<Memory> memory, KeyValueCache<Model, shape>& cache) {
    detail::MemoryStream<CrossAttention>::remember(parameters.cross_attention, memory,
                                                   detail::member<1>(cache.memory));
  }

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model] and memory[memory_len, …]; `mask` is
  /// self-attention's, `memory_mask` the other's. `y` may not overlap them.
  template <class Set = Parameters, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask,
            AnySlices Slices = RunToCompletion>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      InferenceScratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {},
                      const Slices& slices = {}) {
    const auto of_tokens = slices_of<Input>(mask, slices);
    const auto of_memory = slices_of<Memory>(memory_mask, slices);
    Stack::infer(parameters, x, y, scratch, Context{memory, mask, memory_mask, of_tokens, of_memory});
    slices([&]() ATTUNE_INLINE_LAMBDA { detail::clear_behind(of_tokens, y); });
  }
  /// Training: the same, with dropout; the tape keeps what backward needs.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class AnyScratch,
            AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask,
            AnySlices Slices = RunToCompletion>
  static void forward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, View<Output> y,
                      AnyTape& tape, AnyScratch& scratch, const Mask& mask = {},
                      const MemoryMask& memory_mask = {}, const Slices& slices = {}) {
    const auto of_tokens = slices_of<Input>(mask, slices);
    const auto of_memory = slices_of<Memory>(memory_mask, slices);
    Stack::forward_branches(parameters, x, y, tape, scratch,
                            Context{memory, mask, memory_mask, of_tokens, of_memory});
    slices([&]() ATTUNE_INLINE_LAMBDA { detail::clear_behind(of_tokens, y); });
  }
  /// dx[seq_len, d_model] and d_memory[memory_len, …] from dy[seq_len, d_model], overwritten, or NoGradient;
  /// gradients accumulate. The tape is used up. `dx` may be `dy`. The masks are forward's: what they hide has
  /// no influence, whatever it holds.
  template <class Set = Parameters, detail::TapesBranches AnyTape, class Dx, class DMemory, class Gradients,
            class AnyScratch, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask,
            AnySlices Slices = RunToCompletion>
  static void backward(const Set& parameters, ConstView<Input> x, ConstView<Memory> memory, AnyTape& tape,
                       ConstView<Output> dy, Dx&& dx, DMemory&& d_memory, Gradients& gradients,
                       AnyScratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {},
                       const Slices& slices = {}) {
    const auto to_x = detail::sink<Input>(dx);
    const auto to_memory = detail::sink<Memory>(d_memory);
    const auto of_tokens = slices_of<Input>(mask, slices);
    const auto of_memory = slices_of<Memory>(memory_mask, slices);
    Stack::backward_branches(parameters, x, tape, dy, to_x, gradients, scratch,
                             Context{memory, mask, memory_mask, of_tokens, of_memory, to_memory});
    detail::clear_behind(of_tokens, to_x);
    detail::clear_behind(of_memory, to_memory);
  }

 private:
  template <class Mask, class MemoryMask, class Slices, class MemorySlices, class DMemory = NoGradient>
  struct Context {
    ConstView<Memory> memory;
    const Mask& mask;
    const MemoryMask& memory_mask;
    const Slices& slices;               // of the tokens
    const MemorySlices& memory_slices;  // of the memory's
    DMemory d_memory = {};

    ATTUNE_INLINE decltype(auto) slices_of_both() const {
      if constexpr (detail::kHasLength<Slices> || detail::kHasLength<MemorySlices>) {
        return WithMemory<Slices, MemorySlices>(slices, memory_slices);
      } else {
        return (slices);
      }
    }
  };
  template <class Mask, class MemoryMask, class Slices, class MemorySlices, class DMemory = NoGradient>
  Context(ConstView<Memory>, const Mask&, const MemoryMask&, const Slices&, const MemorySlices&, DMemory = {})
      -> Context<Mask, MemoryMask, Slices, MemorySlices, DMemory>;
  // The slices of tokens, or of a memory, of which the mask says how many there are.
  template <class Matrix, class Mask, class Slices>
  ATTUNE_INLINE static auto slices_of(const Mask& mask, const Slices& slices) {
    if constexpr (Stack::kStackTakesLength) {
      return detail::first_tokens<Matrix::rows>(mask, slices);
    } else {
      return slices;
    }
  }
};

/// Every size and option of PyTorch's layer; the defaults are PyTorch's, but for dropout.
struct DecoderLayerShape {
  AttentionShape attention;  // self-attention; bias and dropout as of EncoderLayerShape. Attention to
                             // the memory has the same shape, without positions, window and alibi
  int d_ff;                  // features of a token inside the feed-forward network
  int memory_len = attention.seq_len;  // tokens of the memory, of d_model features
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;  // of every branch
  double epsilon = 1e-5;                       // of the norms
};

namespace detail {

/// The shape of attention to a memory, beside self-attention.
constexpr AttentionShape cross_attention(AttentionShape shape, int memory_len) {
  constexpr AttentionShape kDefault{};
  shape.kv_len = memory_len;
  shape.rotary_dim = kDefault.rotary_dim;
  shape.rotary_pairs = kDefault.rotary_pairs;
  shape.rotary_base = kDefault.rotary_base;
  shape.window = kDefault.window;
  shape.alibi = kDefault.alibi;
  shape.offset = kDefault.offset;
  return shape;
}

template <DecoderLayerShape shape, class Scalar>
struct DecoderParts : EncoderParts<shape, Scalar> {
  static_assert(shape.memory_len > 0, "attune::DecoderLayer: memory_len must be positive");
  using CrossAttention = MultiHeadAttention<cross_attention(shape.attention, shape.memory_len), Scalar>;
};

}  // namespace detail

/// A transformer's decoder layer, as PyTorch's nn.TransformerDecoderLayer: causal self-attention, attention
/// to the encoder's output, and a feed-forward network, each a residual branch with its norm.
template <DecoderLayerShape shape, class ScalarType = float>
struct DecoderLayer : DecoderLayerOf<typename detail::DecoderParts<shape, ScalarType>::SelfAttention,
                                     typename detail::DecoderParts<shape, ScalarType>::CrossAttention,
                                     typename detail::DecoderParts<shape, ScalarType>::Network,
                                     typename detail::DecoderParts<shape, ScalarType>::Norm,
                                     detail::DecoderParts<shape, ScalarType>::kOptions> {
  /// The same with another scalar.
  template <class Other>
  using WithScalar = DecoderLayer<shape, Other>;
  /// Runs token by token as this layer.
  using SteppedAs = DecoderLayer;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
