// A layer that tapes nothing: backward runs its forward once more from x (Chen et al., "Training Deep Nets
// with Sublinear Memory Cost", 2016).
//
//   Repeat<6, Checkpointed<EncoderLayer<kBlock>>>   // six inputs and one tape, instead of six tapes
//
// What the layer tapes lies in scratch, which all layers share, so that one tape is left of many, at the cost
// of one more forward. Masks of dropout are drawn from the same seeds: bits are those of the layer.
#pragma once

#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// How many masks of dropout a tape has.
template <class Tape>
constexpr int count_masks() {
  int count = 0;
  if constexpr (kDropsIn<Tape>) {
    Tape tape;
    tape.for_each_dropout([&count](DropoutTape&) { ++count; });
  }
  return count;
}

// Where the masks of a tape that is not kept start.
template <int count>
struct KeptMasks {
  DropoutTape of[std::size_t{count}];

  template <class Visitor>
  constexpr void for_each_dropout(const Visitor& visitor) {
    for (DropoutTape& mask : of) visitor(mask);
  }
};
template <>
struct KeptMasks<0> {};

/// The same masks in another tape.
template <class From, class To>
constexpr void copy_masks([[maybe_unused]] From& from, [[maybe_unused]] To& to) {
  if constexpr (kDropsIn<From>) {
    constexpr int kCount = count_masks<From>();
    DropoutTape masks[std::size_t{kCount}];
    DropoutTape* mask = masks;
    from.for_each_dropout([&mask](DropoutTape& each) { *mask++ = each; });
    mask = masks;
    to.for_each_dropout([&mask](DropoutTape& each) { each = *mask++; });
  }
}

}  // namespace detail

/// `Layer`, whose tape is computed once more in backward.
template <detail::CheckedLayer Layer>
struct Checkpointed : Layer {
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  using Parameters = typename Layer::Parameters;
  using InferenceScratch = typename Layer::InferenceScratch;
  template <class Other>
  using WithScalar = Checkpointed<typename detail::WithScalarOf<Layer, Other>::type>;
  template <CacheShape cache>
  using Stream = detail::StreamOf<Layer, cache>;
  template <class Gradients>
  static constexpr bool kReadsInput = true;
  static constexpr bool kTakesMask = detail::kTakesMask<Layer>;
  static constexpr bool kTakesPaddingOnly = detail::kTakesPaddingOnly<Layer>;

  template <class Gradients>
  struct TapeOf : detail::KeptMasks<detail::count_masks<detail::TapeOf<Layer, Gradients>>()> {};
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] detail::TapeOf<Layer, Gradients> tape;
    [[no_unique_address]] detail::ScratchOf<Layer, Gradients> layer;
    Output y;  // once more
  };
  using Scratch = ScratchOf<Parameters>;

  /// Inference. What may overlap is the layer's.
  template <class Set = Parameters, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static detail::Outcome<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                        InferenceScratch& scratch, const Mask& mask = {},
                                        const Pieces& pieces = {}) {
    return detail::forward_in<Layer>(pieces, mask, parameters, x, y, scratch);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static detail::Outcome<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                        TapeOf<Kept>& tape, ScratchOf<Kept>& scratch, const Mask& mask = {},
                                        const Pieces& pieces = {}) {
    pieces([&]() ATTUNE_INLINE_LAMBDA { detail::copy_masks(tape, scratch.tape); });
    return detail::forward_in<Layer>(pieces, mask, parameters, x, y, scratch.tape, scratch.layer);
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate. x, parameters and mask are forward's. What
  /// may overlap is the layer's.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AttentionMask Mask = NoMask,
            AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {},
                       const Pieces& pieces = {}) {
    (void)forward(parameters, x, View<Output>(scratch.y), tape, scratch, mask, pieces);
    detail::backward_in<Layer>(pieces, mask, parameters, x, scratch.tape, dy, dx, gradients, scratch.layer);
    pieces([&]() ATTUNE_INLINE_LAMBDA { detail::copy_masks(scratch.tape, tape); });
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
