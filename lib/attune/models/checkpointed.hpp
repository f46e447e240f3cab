// A layer without a tape: backward repeats its forward from x (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016).
//
//   Repeat<6, Checkpointed<EncoderLayer<kBlock>>>   // six inputs and one tape, instead of six tapes
//
// The layer's tape is in scratch, which all layers share. Several layers then need one tape, at the cost of
// one more forward each. Dropout masks use the same seeds, so the bits equal the layer's.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/transformer_layer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Repeats the whole forward.
template <class Layer>
struct RunOnceMore : Layer {
  using typename Layer::InferenceScratch;
  using typename Layer::Scalar, typename Layer::Input, typename Layer::Output, typename Layer::Parameters;
  template <class Gradients>
  static constexpr bool kReadsInput = true;
  static constexpr Abilities kAbilities = detail::kAbilitiesInContext<Layer>;

  template <class Gradients>
  struct TapeOf : MasksOf<detail::TapeOf<Layer, Gradients>> {};
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] detail::TapeOf<Layer, Gradients> tape;
    [[no_unique_address]] detail::ScratchOf<Layer, Gradients> layer;
    Output y;  // recomputed
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
    context.stage([&]() ATTUNE_INLINE_LAMBDA { detail::copy_masks(tape, scratch.tape); });
    return detail::forward_in<Layer>(context, parameters, x, y, scratch.tape, scratch.layer);
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate. x, parameters and mask are forward's.
  /// Overlap is allowed as for the layer.
  template <class Set = Parameters, class GradientSet, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                       ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<GradientSet>& scratch,
                       const Call& context = {}) {
    (void)context.inside([&]() ATTUNE_INLINE_LAMBDA {
      return forward(parameters, x, View<Output>(scratch.y), tape, scratch, context);
    });
    detail::backward_in<Layer>(context, parameters, x, scratch.tape, dy, dx, gradients, scratch.layer);
    context.stage([&]() ATTUNE_INLINE_LAMBDA { detail::copy_masks(scratch.tape, tape); });
  }
};

// The same for an encoder layer, one branch at a time; its functions take either tape.
template <class Layer>
struct RecomputedBranches : Layer {
  template <class Gradients>
  using TapeOf = typename Layer::template RecomputedTapeOf<Gradients>;
  template <class Gradients>
  using ScratchOf = typename Layer::template RecomputedScratchOf<Gradients>;
  using Tape = TapeOf<typename Layer::Parameters>;
  using Scratch = ScratchOf<typename Layer::Parameters>;
  template <class Gradients>
  static constexpr bool kReadsInput = true;
};

template <class Layer>
struct OnceMore {
  using type = RunOnceMore<Layer>;
};
template <class Layer>
  requires(kRunsByBranches<Layer>)
struct OnceMore<Layer> {
  using type = RecomputedBranches<Layer>;
};

}  // namespace detail

/// `Layer` with its tape recomputed in backward; in an encoder layer, one branch at a time.
template <detail::CheckedLayer Layer>
struct Checkpointed : detail::OnceMore<Layer>::type {
  template <class Other>
  using WithScalar = Checkpointed<typename detail::WithScalarOf<Layer, Other>::type>;
  template <int tokens, CacheShape cache>
  using Stream = detail::StreamOf<Layer, tokens, cache>;
  using SteppedAs = Checkpointed;
};

namespace detail {

template <class Layer>
inline constexpr bool kWorksInPlace<Checkpointed<Layer>> = kWorksInPlace<Layer>;
template <class Layer>
inline constexpr bool kUpdatesInPlace<Checkpointed<Layer>> = kUpdatesInPlace<Layer>;

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
