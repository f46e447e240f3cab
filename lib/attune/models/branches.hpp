// The branches of encoder and decoder layers (transformer_layer.hpp adds them up): self-attention, attention
// to a memory, and a feed-forward network. Each knows its member in the layer's sets, and how to run token by
// token. A context is the tokens' context, or a struct with it and the memories' contexts.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/attention/cached_attention.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/execution/stream.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The context of a stack's tokens: the context itself, or a member of a struct.
ATTUNE_INLINE const auto& tokens_of(const auto& context) { return context.tokens; }
template <class... Types>
ATTUNE_INLINE const auto& tokens_of(const Context<Types...>& context) {
  return context;
}

// The member of a layer's sets and tapes for a branch.
struct SelfAttentionMember {
  template <class Type>
  struct In {
    [[no_unique_address]] Type self_attention;
  };
  ATTUNE_INLINE static constexpr auto& of(auto& set) { return set.self_attention; }
};
struct CrossAttentionMember {
  template <class Type>
  struct In {
    [[no_unique_address]] Type cross_attention;
  };
  ATTUNE_INLINE static constexpr auto& of(auto& set) { return set.cross_attention; }
};
struct FeedForwardMember {
  template <class Type>
  struct In {
    [[no_unique_address]] Type feed_forward;
  };
  ATTUNE_INLINE static constexpr auto& of(auto& set) { return set.feed_forward; }
};

// A step of several tokens in a branch that is a layer. Its memory is member `index` of context.memory.
template <int index, class MemberType, class Part, CacheShape cache, int tokens>
struct StreamBranch {
  using Member = MemberType;
  using Stream = StreamOf<Part, tokens, cache>;
  using InferenceScratch = typename Stream::Scratch;
  static constexpr Abilities kAbilities{.output_may_be_input = StepsInPlace<Part, tokens, cache>};

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    InferenceScratch& scratch) {
    auto&& memory = member<index>(context.memory);
    Stream::step(context.position, parameters, x, y, memory, scratch);
  }
};
// A step in a branch that attends to a remembered memory, in a stream of at most `most` tokens.
template <int index, class Part, CacheShape cache, int tokens, std::uint64_t most>
struct MemoryStreamBranch {
  using Member = CrossAttentionMember;
  using Stream = MemoryStream<Part>;
  using Products = std::conditional_t<cache.precision == CachePrecision::kInt8, kernels::Int8CacheProducts,
                                      kernels::FloatProducts>;
  using InferenceScratch = typename Stream::template Scratch<tokens>;
  static constexpr Abilities kAbilities{.output_may_be_input = true};

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    InferenceScratch& scratch) {
    Stream::template step<tokens, most, Products>(
        context.position, parameters, x, y, member<index>(context.memory), scratch, context.memory_mask);
  }
};
// The context of a step.
template <class StreamMemory, class MemoryMask = NoMask>
struct StreamContext {
  std::uint64_t position;
  StreamMemory& memory;
  const MemoryMask& memory_mask;
  Context<> tokens;
};

// A branch that is a layer: self-attention, or a network.
template <class MemberType, class PartType>
struct LayerBranch {
  using Member = MemberType;
  using Part = PartType;
  using InferenceScratch = typename Part::InferenceScratch;
  template <class Gradients>
  using ScratchOf = detail::ScratchOf<Part, Gradients>;
  /// The context of the rows of its tape.
  ATTUNE_INLINE static const auto& context_of_tape(const auto& context) { return tokens_of(context); }
  static constexpr Abilities kAbilities =
      with(kAbilitiesInContext<Part>, &Abilities::output_may_be_input, OutputMayBeInput<Part>,
           &Abilities::recomputes_tape, RecomputesTape<Part>, &Abilities::lanes,
           larger(kLanesOf<Part>, Lanes::kBetweenParts));

  template <CacheShape cache>
  using StreamMemory = StreamMemoryOf<Part, cache>;
  template <CacheShape cache>
  static constexpr std::uint64_t kMaxTokens = detail::kMaxTokens<Part, cache>;
  template <int index, CacheShape cache, int tokens, std::uint64_t most>
  using Streamed = StreamBranch<index, Member, Part, cache, tokens>;

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    auto&... tape_and_scratch) {
    forward_in<Part>(tokens_of(context), parameters, x, y, tape_and_scratch...);
  }
  ATTUNE_INLINE static void backward(const auto& parameters, auto x, auto& tape, auto dy, auto dx,
                                     auto& gradients, auto& scratch, const auto& context) {
    backward_in<Part>(tokens_of(context), parameters, x, tape, dy, dx, gradients, scratch);
  }
  // The same, with x from input(), which is called once scratch is dead.
  ATTUNE_INLINE static void backward_from(const auto& parameters, const auto& input, auto& tape, auto dy,
                                          auto dx, auto& gradients, auto& scratch, const auto& context) {
    Part::backward_from(parameters, input, tape, dy, dx, gradients, scratch, tokens_of(context));
  }
};

// A branch that attends to a memory, context.memory[memory_len, d_model]. Its gradient goes to
// context.d_memory. Memory and tokens may be shorter than their largest length.
template <class Attention>
struct CrossAttentionBranch {
  using Member = CrossAttentionMember;
  using Part = Attention;
  using Memory = typename Attention::KeyInput;
  using InferenceScratch = typename Attention::InferenceScratch;
  template <class Gradients>
  struct ScratchOf {
    typename Attention::template ScratchOf<Gradients> attention;
    Memory d_value;  // gradient of the memory as values; as keys, it goes to d_memory
  };
  ATTUNE_INLINE static const auto& context_of_tape(const auto& context) { return context.cross; }
  static constexpr Abilities kAbilities{.takes_length = detail::kAbilities<Attention>.takes_context,
                                        .output_may_be_input = OutputMayBeInput<Attention>};

  template <CacheShape cache>
  using StreamMemory = typename MemoryStream<Attention>::Memory;
  template <CacheShape cache>
  static constexpr std::uint64_t kMaxTokens = kAnyNumber;
  template <int index, CacheShape cache, int tokens, std::uint64_t most>
  using Streamed = MemoryStreamBranch<index, Attention, cache, tokens, most>;

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    InferenceScratch& scratch) {
    Attention::forward(parameters, x, context.memory, context.memory, y, scratch, context.cross);
  }
  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context, auto& tape,
                                    auto& scratch) {
    Attention::forward(parameters, x, context.memory, context.memory, y, tape, scratch.attention,
                       context.cross);
  }
  ATTUNE_INLINE static void backward(const auto& parameters, auto x, auto& tape, auto dy, auto dx,
                                     auto& gradients, auto& scratch, const auto& context) {
    // Tokens hidden by the mask of self-attention are queries here.
    constexpr bool kHidesQueries = std::remove_cvref_t<decltype(context.tokens)>::kSkipsZeros &&
                                   !std::remove_cvref_t<decltype(context.cross)>::kSkipsZeros;
    using Own = kernels::OwnZeroSkippingOf<typename std::remove_cvref_t<decltype(context.cross)>::Products>;
    const auto& cross = first_if<kHidesQueries>(context.cross.with_zeros(Own{}), context.cross);
    const auto d_value =
        first_if<kWanted<decltype(context.d_memory)>>(View<Memory>(scratch.d_value), NoGradient{});
    Attention::backward(parameters, x, context.memory, context.memory, tape, dy, dx, context.d_memory,
                        d_value, gradients, scratch.attention, cross);
    add_to<Memory>(context.cross.keys(), d_value, context.d_memory);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
