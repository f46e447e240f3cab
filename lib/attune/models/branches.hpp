// What the residual branches of encoder and decoder layers are (transformer_layer.hpp adds them up): a layer,
// or attention to a memory; and either token by token. A context says what they are told beside x: pieces,
// masks, memories.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/attention/cached_attention.hpp>
#include <attune/core/layer.hpp>
#include <attune/core/layer_calls.hpp>
#include <attune/core/stream.hpp>
#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

// Hides nothing, but says that something else is hidden.
struct HidesElsewhere : NoMask {};

// A branch that is a layer: self-attention, or a network.
template <class Part>
struct LayerBranch : Part {
  /// Whether it can leave out its output, and takes its input when its scratch is dead.
  static constexpr bool kRetapes = detail::kRetapes<Part>;
  template <class Gradients>
  using TapeOf = detail::TapeOf<Part, Gradients>;
  template <class Gradients>
  using ScratchOf = detail::ScratchOf<Part, Gradients>;

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    auto&... tape_and_scratch) {
    forward_in<Part>(context.pieces, context.mask, parameters, x, y, tape_and_scratch...);
  }
  ATTUNE_INLINE static void backward(const auto& parameters, auto x, auto& tape, auto dy, auto dx,
                                     auto& gradients, auto& scratch, const auto& context) {
    backward_in<Part>(context.pieces, context.mask, parameters, x, tape, dy, dx, gradients, scratch);
  }
};

// A branch of so many tokens of a stream, whose part of context.memory is member `index`.
template <int index, class Part, CacheShape cache, int tokens>
struct StreamBranch {
  using Stream = StreamOf<Part, cache>;
  using InferenceScratch = typename Stream::template Scratch<tokens>;
  static constexpr bool kOutputMayBeInput = detail::kOutputMayBeInput<Part> && !SaysStream<Part, cache>;

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    InferenceScratch& scratch) {
    auto&& memory = member<index>(context.memory);
    Stream::template step<tokens>(context.position, parameters, x, y, memory, scratch);
  }
};
// What infer() of a layer's branches is told there.
template <class Memory>
struct StreamContext {
  std::uint64_t position;
  Memory& memory;
  InOneGo pieces = {};
};
template <class Memory, class MemoryMask>
struct MaskedStreamContext : StreamContext<Memory> {
  const MemoryMask& memory_mask;
};

// The branch that attends to what a decoder layer remembers of its memory, of a stream of at most `most`.
template <int index, class Part, int tokens, std::uint64_t most>
struct MemoryStreamBranch {
  using Stream = MemoryStream<Part>;
  using InferenceScratch = typename Stream::template Scratch<tokens>;

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    InferenceScratch& scratch) {
    Stream::template step<tokens, most>(context.position, parameters, x, y, member<index>(context.memory),
                                        scratch, context.memory_mask);
  }
};

// A branch that attends to a memory: context.memory[memory_len, d_model], whose gradient goes to
// context.d_memory. Of the memory as of tokens there may be the first ones alone.
template <class Attention>
struct MemoryBranch : Attention {
  using Memory = typename Attention::KeyInput;
  template <class Gradients>
  using TapeOf = typename Attention::template TapeOf<Gradients>;
  template <class Gradients>
  struct ScratchOf {
    typename Attention::template ScratchOf<Gradients> attention;
    Memory d_value;  // of the memory as values; as keys it goes to d_memory
  };

  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context,
                                    typename Attention::InferenceScratch& scratch) {
    Attention::forward(parameters, x, context.memory, context.memory, y, scratch, context.memory_mask,
                       context.pieces_of_both());
  }
  ATTUNE_INLINE static void forward(const auto& parameters, auto x, auto y, const auto& context, auto& tape,
                                    auto& scratch) {
    Attention::forward(parameters, x, context.memory, context.memory, y, tape, scratch.attention,
                       context.memory_mask, context.pieces_of_both());
  }
  ATTUNE_INLINE static void backward(const auto& parameters, auto x, auto& tape, auto dy, auto dx,
                                     auto& gradients, auto& scratch, const auto& context) {
    // Tokens that self-attention leaves out are queries here.
    constexpr bool kElsewhere = !kMasks<std::remove_cvref_t<decltype(context.memory_mask)>> &&
                                kMasks<std::remove_cvref_t<decltype(context.mask)>>;
    const auto run = [&](auto d_key, auto d_value, const auto& mask) ATTUNE_INLINE_LAMBDA {
      Attention::backward(parameters, x, context.memory, context.memory, tape, dy, dx, d_key, d_value,
                          gradients, scratch.attention, mask, context.pieces_of_both());
    };
    const auto with_mask = [&](auto d_key, auto d_value) ATTUNE_INLINE_LAMBDA {
      if constexpr (kElsewhere) {
        run(d_key, d_value, HidesElsewhere{});
      } else {
        run(d_key, d_value, context.memory_mask);
      }
    };
    if constexpr (kAsked<decltype(context.d_memory)>) {
      with_mask(context.d_memory, View<Memory>(scratch.d_value));
      add_to<Memory>(context.memory_pieces, scratch.d_value.data(), context.d_memory.data);
    } else {
      with_mask(NoGradient{}, NoGradient{});
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
