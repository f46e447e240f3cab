// A layer without a tape: backward repeats its forward from x (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016).
//
//   Repeat<6, Checkpointed<EncoderLayer<kBlock>>>   // six inputs and one tape, instead of six tapes
//
// The layer's tape is in scratch, which all layers share. Several layers then need one tape, at the cost of
// one more forward each. Dropout masks use the same seeds, so the bits equal the layer's.
//
// Layers under any policy of their tape (branch_memory.hpp) are here, too: a layer as a whole, and a
// transformer layer branch by branch. quantized_tape.hpp packs their tapes.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/transformer_layer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Any layer. While it runs, its tape is in scratch.
template <class Layer, class Policy>
struct WholeLayer : Layer {
  using typename Layer::InferenceScratch;
  using typename Layer::Scalar, typename Layer::Input, typename Layer::Output, typename Layer::Parameters;
  template <class Gradients>
  static constexpr bool kReadsInput = Policy::kRecomputes;
  static constexpr Abilities kAbilities = kAbilitiesWith<Layer, Policy>;

 private:
  template <class Gradients>
  using OfLayer = detail::TapeOf<Layer, Gradients>;
  template <class Gradients>
  using OfPolicy = typename Policy::template Tape<Layer, Gradients>;
  // Whether the tape itself is kept, because the layer has no TapeIn.
  template <class Gradients>
  static constexpr bool kKeepsTape = std::is_same_v<OfPolicy<Gradients>, OfLayer<Gradients>>;
  template <class Gradients>
  static constexpr bool kPacksInput = Policy::kPacks&& detail::ReadsInput<Layer, Gradients>;

 public:
  template <class Gradients>
  struct TapeOf : OfPolicy<Gradients> {
    [[no_unique_address]] MemberIf<kPacksInput<Gradients>, typename Policy::template Rows<Input>, 0> x;
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] MemberIf<!kKeepsTape<Gradients>, OfLayer<Gradients>, 0> tape;
    [[no_unique_address]] MemberIf<kPacksInput<Gradients>, Input, 1> x;
    [[no_unique_address]] detail::ScratchOf<Layer, Gradients> layer;
    [[no_unique_address]] MemberIf<Policy::kRecomputes, Output, 2> y;  // recomputed
  };
  using Scratch = ScratchOf<Parameters>;

  /// Inference. Overlap is allowed as for the layer.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static detail::ForwardResult<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                              InferenceScratch& scratch, const Call& context = {}) {
    return detail::forward_in<Layer>(context, parameters, x, y, scratch);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static detail::ForwardResult<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                              TapeOf<GradientSet>& tape, ScratchOf<GradientSet>& scratch,
                                              const Call& context = {}) {
    OfPolicy<GradientSet>& kept = tape;
    if constexpr (kPacksInput<GradientSet>) CopyTape::rows(context, tape.x, x);
    if constexpr (kKeepsTape<GradientSet>) {
      return detail::forward_in<Layer>(context, parameters, x, y, kept, scratch.layer);
    } else {
      context.stage([&]() ATTUNE_INLINE_LAMBDA { copy_masks(kept, scratch.tape); });
      const auto run = [&]() ATTUNE_INLINE_LAMBDA {
        return detail::forward_in<Layer>(context, parameters, x, y, scratch.tape, scratch.layer);
      };
      return then([&]() ATTUNE_INLINE_LAMBDA { return context.inside(run); },
                  [&]() ATTUNE_INLINE_LAMBDA {
                    if constexpr (Policy::kPacks) copy_tape(context, kept, scratch.tape);
                  });
    }
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate. Parameters and mask are forward's, and x,
  /// unless it is packed. Uses up the tape. Overlap of `dx` and `dy` is allowed as for the layer.
  template <class Set = Parameters, class GradientSet, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                       ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<GradientSet>& scratch,
                       const Call& context = {}) {
    OfPolicy<GradientSet>& kept = tape;
    if constexpr (Policy::kRecomputes) {
      (void)context.inside([&]() ATTUNE_INLINE_LAMBDA {
        return forward(parameters, x, View<Output>(scratch.y), tape, scratch, context);
      });
    } else if constexpr (kPacksInput<GradientSet>) {
      CopyTape::rows(context, scratch.x, tape.x);
      x = scratch.x;
    }
    if constexpr (kKeepsTape<GradientSet>) {
      detail::backward_in<Layer>(context, parameters, x, kept, dy, dx, gradients, scratch.layer);
    } else {
      if constexpr (Policy::kPacks) copy_tape(context, scratch.tape, kept);
      context.inside([&]() ATTUNE_INLINE_LAMBDA {
        detail::backward_in<Layer>(context, parameters, x, scratch.tape, dy, dx, gradients, scratch.layer);
      });
      context.stage([&]() ATTUNE_INLINE_LAMBDA { copy_masks(scratch.tape, kept); });
    }
  }
};

// An encoder or decoder layer, one branch at a time; its functions take any tape.
template <class Layer, class Policy>
struct BranchByBranch : Layer {
  template <class Gradients>
  using TapeOf = typename Layer::template TapeOf<Gradients, Policy>;
  template <class Gradients>
  using ScratchOf = typename Layer::template ScratchOf<Gradients, Policy>;
  using Tape = TapeOf<typename Layer::Parameters>;
  using Scratch = ScratchOf<typename Layer::Parameters>;
  template <class Gradients>
  static constexpr bool kReadsInput = Policy::kRecomputes;
  static constexpr Abilities kAbilities = kAbilitiesWith<Layer, Policy>;
};

/// Whether a layer's memory takes a policy.
template <class Layer>
concept RunsByBranches = IsItself<Layer> && requires {
  typename Layer::template TapeOf<typename Layer::Parameters, RecomputedTapes>;
};
template <class Layer, class Policy>
using WithTapes =
    std::conditional_t<RunsByBranches<Layer>, BranchByBranch<Layer, Policy>, WholeLayer<Layer, Policy>>;

}  // namespace detail

/// `Layer` with its tape recomputed in backward; in an encoder layer, one branch at a time.
template <detail::CheckedLayer Layer>
struct Checkpointed : detail::WithTapes<Layer, detail::RecomputedTapes> {
  template <class Other>
  using WithScalar = Checkpointed<typename detail::WithScalarOf<Layer, Other>::type>;
  template <int tokens, CacheShape cache>
  using Stream = detail::StreamOf<Layer, tokens, cache>;
  using SteppedAs = Checkpointed;
};

}  // namespace ATTUNE_NAMESPACE
