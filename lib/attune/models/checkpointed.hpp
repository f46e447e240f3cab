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
struct WholeLayer : Layer, Passes<WholeLayer<Layer, Policy>> {
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
    static constexpr bool kKeepsTape = KeepsTape<Policy, Layer, Gradients>;
    [[no_unique_address]] MemberIf<!kKeepsTape, OfLayer<Gradients>, 0> tape;
    [[no_unique_address]] MemberIf<kPacksInput<Gradients>, Input, 1> x;
    [[no_unique_address]] detail::ScratchOf<Layer, Gradients> layer;
    [[no_unique_address]] MemberIf<Policy::kRecomputes, Output, 2> y;  // recomputed
  };
  using Scratch = ScratchOf<Parameters>;

  /// Overlap is allowed as for the layer, except of `y` and `x` in training.
  using Passes<WholeLayer>::forward, Passes<WholeLayer>::backward;

 private:
  friend Passes<WholeLayer>;
  ATTUNE_INLINE static ForwardResult<Layer> run(const auto& context, const auto& parameters, const auto& x,
                                                const auto& y, InferenceScratch& scratch) {
    return forward_in<Layer>(context, parameters, x, y, scratch);
  }
  template <class Scratch>
  ATTUNE_INLINE static ForwardResult<Layer> run(const auto& context, const auto& parameters, const auto& x,
                                                const auto& y, Scratch& scratch, auto& tape) {
    auto& kept = kept_tape(tape);
    auto& own = first_if<Scratch::kKeepsTape>(kept, scratch.tape);
    CopyTape::rows(context, tape.x, x);
    copy_starts(context, kept, own);
    const auto run_layer = [&]() ATTUNE_INLINE_LAMBDA {
      return forward_in<Layer>(context, parameters, x, y, own, scratch.layer);
    };
    return then([&]() ATTUNE_INLINE_LAMBDA { return context.inside(run_layer); },
                [&]() ATTUNE_INLINE_LAMBDA { Policy::copy(context, kept, own); });
  }
  // Parameters and mask are forward's, and x, unless it is packed.
  template <class Scratch>
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, ConstView<Input> x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         Scratch& scratch) {
    auto& kept = kept_tape(tape);
    auto& own = first_if<Scratch::kKeepsTape>(kept, scratch.tape);
    if constexpr (Policy::kRecomputes) {
      (void)context.inside([&]() ATTUNE_INLINE_LAMBDA {
        return run(context, parameters, x, View<Output>(scratch.y), scratch, tape);
      });
    }
    CopyTape::rows(context, scratch.x, tape.x);
    Policy::copy(context, own, kept);
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      backward_in<Layer>(context, parameters, ConstView<Input>(existing(scratch.x, x)), own, dy, dx,
                         gradients, scratch.layer);
    });
    copy_starts(context, own, kept);
  }
  template <class Gradients>
  ATTUNE_INLINE static OfPolicy<Gradients>& kept_tape(TapeOf<Gradients>& tape) {
    return tape;
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
