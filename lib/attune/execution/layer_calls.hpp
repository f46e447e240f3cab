// A layer called: with a mask, which it may have no use for, and in slices, which it may not have.
#pragma once

#include <utility>

#include <attune/core/status.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/own_layer.hpp>
#include <attune/execution/slices.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// A mask for a layer that would swallow it silently does not compile.
template <class Layer, class Mask>
constexpr void check_mask() {
  static_assert(AttentionMask<Mask>,
                "attune: what stands in the place of the mask is none; masks have hide and bias "
                "(execution/attention_mask.hpp)");
  static_assert(
      !kMasks<Mask> || kTakesMask<Layer>,
      "attune: no layer of the model has use for a mask; leave it out, or add attention or pooling");
  static_assert(!kMasks<Mask> || !kTakesPaddingOnly<Layer> || kSaysPadding<Mask>,
                "attune: the model asks a mask for padding alone, and this one says nothing of it; leave it "
                "out, or add attention");
}

/// What a layer cannot do does not compile, together with such a mask and such slices.
template <class Layer, class Mask, class Slices>
constexpr void check_call() {
  constexpr Abilities can = kAbilities<Layer>;
  static_assert(
      !can.takes_length || can.takes_slices || can.mask != MaskUse::kNone || !can.mixes_tokens,
      "attune::IsLayer: kAbilities says that the layer takes a length, but neither slices nor a mask, so "
      "nothing would tell it; say .takes_slices and take them as the last argument");
  static_assert(
      !(kMasks<Mask> || kHasLength<Slices>) || !can.mixes_tokens || can.takes_slices ||
          can.mask != MaskUse::kNone,
      "attune::IsLayer: there is a mask or a length, but tokens meet in this layer and it takes neither, "
      "so it would read padding; take a mask or slices and say so in kAbilities, or say "
      "kAbilities{.mixes_tokens = false} if no row of y depends on another row of x");
}

/// Whether a call begins a sequence of its true length: its mask says one, its slices do not know of it.
template <class Mask, class Slices>
inline constexpr bool kBeginsLength = kSaysLength<Mask> && !kHasLength<Slices>;
template <class Layer, class Mask, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_through(const Mask& mask, Arguments&&... arguments) {
  if constexpr (kTakesMask<Layer> && kSaysLength<Mask>) {
    return Layer::forward(std::forward<Arguments>(arguments)..., AsPadding<Mask>{mask});
  } else if constexpr (kTakesMask<Layer>) {
    return Layer::forward(std::forward<Arguments>(arguments)..., mask);
  } else {
    return Layer::forward(std::forward<Arguments>(arguments)...);
  }
}
/// The same in slices: the layer's own, or all of it. Ids are refused by the slice that looks at them.
template <class Layer, class Mask, class Slices, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_in(const Slices& slices, const Mask& mask, Arguments&&... arguments) {
  check_call<Layer, Mask, Slices>();
  if constexpr ((Collects<Arguments> || ...)) {
    return forward_in<Layer>(slices, mask, without_collected(arguments)...);
  } else if constexpr (kBeginsLength<Mask, Slices> && !Slices::kRunsToCompletion) {
    return forward_in<Layer>(slices, AsPadding<Mask>{mask}, std::forward<Arguments>(arguments)...);
  } else if constexpr (Slices::kRunsToCompletion && !kHasLength<Slices>) {
    return forward_through<Layer>(mask, std::forward<Arguments>(arguments)...);
  } else if constexpr (kAbilities<Layer>.takes_slices && kTakesMask<Layer>) {
    return Layer::forward(std::forward<Arguments>(arguments)..., mask, slices);
  } else if constexpr (kAbilities<Layer>.takes_slices) {
    return Layer::forward(std::forward<Arguments>(arguments)..., NoMask{}, slices);
  } else if constexpr (kRunsByToken<Layer>) {
    forward_by_token<Layer>(slices, arguments...);
  } else if constexpr (kTakesIds<Layer>) {
    return slices.answer([&] { return forward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
  } else {
    slices([&] { forward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
  }
}
/// The same, with kOk where it answers nothing.
template <class Layer, class Mask, class Slices, class... Arguments>
ATTUNE_INLINE Status forward_status(const Slices& slices, const Mask& mask, Arguments&&... arguments) {
  if constexpr (kTakesIds<Layer>) {
    return forward_in<Layer>(slices, mask, std::forward<Arguments>(arguments)...);
  } else {
    forward_in<Layer>(slices, mask, std::forward<Arguments>(arguments)...);
    return Status::kOk;
  }
}
/// arguments: parameters, x, tape, dy, dx, gradients, scratch. The mask is forward's.
template <class Layer, class Mask, class... Arguments>
ATTUNE_INLINE void backward_through(const Mask& mask, Arguments&&... arguments) {
  if constexpr (kSaysLength<Mask>) {
    backward_through<Layer>(AsPadding<Mask>{mask}, std::forward<Arguments>(arguments)...);
  } else if constexpr (kAbilities<Layer>.takes_slices || kAbilities<Layer>.mask == MaskUse::kScores) {
    Layer::backward(std::forward<Arguments>(arguments)..., mask);
  } else {
    Layer::backward(std::forward<Arguments>(arguments)...);
  }
}
/// The same in slices: the layer's own, or all of it.
template <class Layer, class Mask, class Slices, class... Arguments>
ATTUNE_INLINE void backward_in(const Slices& slices, const Mask& mask, Arguments&&... arguments) {
  check_call<Layer, Mask, Slices>();
  if constexpr ((Collects<Arguments> || ...)) {
    collect([&](auto&&... own) { backward_in<Layer>(slices, mask, own...); }, arguments...);
  } else if constexpr (kBeginsLength<Mask, Slices> && !Slices::kRunsToCompletion) {
    backward_in<Layer>(slices, AsPadding<Mask>{mask}, std::forward<Arguments>(arguments)...);
  } else if constexpr (kRunsByToken<Layer> &&
                       (kMasks<Mask> || !Slices::kRunsToCompletion || kHasLength<Slices>)) {
    backward_by_token<Layer, kMasks<Mask>>(slices, arguments...);
  } else if constexpr (Slices::kRunsToCompletion && !kHasLength<Slices>) {
    backward_through<Layer>(mask, std::forward<Arguments>(arguments)...);
  } else if constexpr (kAbilities<Layer>.takes_slices) {
    Layer::backward(std::forward<Arguments>(arguments)..., mask, slices);
  } else {
    slices([&] { backward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
