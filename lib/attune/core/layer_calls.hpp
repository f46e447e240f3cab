// A layer called: with a mask, which it may have no use for, and in pieces, which it may not have.
#pragma once

#include <utility>

#include <attune/core/attention_mask.hpp>
#include <attune/core/layer.hpp>
#include <attune/core/pieces.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// A mask for a layer that would swallow it silently does not compile.
template <class Layer, class Mask>
constexpr void check_mask() {
  static_assert(AttentionMask<Mask>,
                "attune: what stands in the place of the mask is none; masks have hide and bias "
                "(core/attention_mask.hpp)");
  static_assert(
      !kMasks<Mask> || kTakesMask<Layer>,
      "attune: no layer of the model has use for a mask; leave it out, or add attention or pooling");
  static_assert(!kMasks<Mask> || !kTakesPaddingOnly<Layer> || kSaysPadding<Mask>,
                "attune: the model asks a mask for padding alone, and this one says nothing of it; leave it "
                "out, or add attention");
}

template <class Layer, class Mask, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_through(const Mask& mask, Arguments&&... arguments) {
  if constexpr (kTakesMask<Layer>) {
    return Layer::forward(std::forward<Arguments>(arguments)..., mask);
  } else {
    return Layer::forward(std::forward<Arguments>(arguments)...);
  }
}
/// The same in pieces: the layer's own, or all of it. Ids are refused by the piece that looks at them.
template <class Layer, class Mask, class Pieces, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_in(const Pieces& pieces, const Mask& mask, Arguments&&... arguments) {
  if constexpr (!kTakesMask<Layer> && kMasks<Mask>) {
    return forward_in<Layer>(pieces, NoMask{}, std::forward<Arguments>(arguments)...);
  } else if constexpr (Pieces::kInOneGo && !kHasLength<Pieces>) {
    return forward_through<Layer>(mask, std::forward<Arguments>(arguments)...);
  } else if constexpr (requires { Layer::forward(std::forward<Arguments>(arguments)..., mask, pieces); }) {
    return Layer::forward(std::forward<Arguments>(arguments)..., mask, pieces);
  } else if constexpr (requires { Layer::forward(std::forward<Arguments>(arguments)..., pieces); }) {
    return Layer::forward(std::forward<Arguments>(arguments)..., pieces);
  } else if constexpr (kTakesIds<Layer>) {
    Status status = Status::kOk;
    pieces([&] { status = forward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
    return status;
  } else {
    pieces([&] { forward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
  }
}
/// The same, with kOk where it answers nothing.
template <class Layer, class Mask, class Pieces, class... Arguments>
ATTUNE_INLINE Status forward_status(const Pieces& pieces, const Mask& mask, Arguments&&... arguments) {
  if constexpr (kTakesIds<Layer>) {
    return forward_in<Layer>(pieces, mask, std::forward<Arguments>(arguments)...);
  } else {
    forward_in<Layer>(pieces, mask, std::forward<Arguments>(arguments)...);
    return Status::kOk;
  }
}
/// arguments: parameters, x, tape, dy, dx, gradients, scratch. The mask is forward's.
template <class Layer, class Mask, class... Arguments>
ATTUNE_INLINE void backward_through(const Mask& mask, Arguments&&... arguments) {
  if constexpr (requires { Layer::backward(std::forward<Arguments>(arguments)..., mask); }) {
    Layer::backward(std::forward<Arguments>(arguments)..., mask);
  } else {
    Layer::backward(std::forward<Arguments>(arguments)...);
  }
}
/// The same in pieces: the layer's own, or all of it.
template <class Layer, class Mask, class Pieces, class... Arguments>
ATTUNE_INLINE void backward_in(const Pieces& pieces, const Mask& mask, Arguments&&... arguments) {
  if constexpr (Pieces::kInOneGo && !kHasLength<Pieces>) {
    backward_through<Layer>(mask, std::forward<Arguments>(arguments)...);
  } else if constexpr (requires { Layer::backward(std::forward<Arguments>(arguments)..., mask, pieces); }) {
    Layer::backward(std::forward<Arguments>(arguments)..., mask, pieces);
  } else if constexpr (requires { Layer::backward(std::forward<Arguments>(arguments)..., pieces); }) {
    Layer::backward(std::forward<Arguments>(arguments)..., pieces);
  } else {
    pieces([&] { backward_through<Layer>(mask, std::forward<Arguments>(arguments)...); });
  }
}

/// `pieces` of the tokens that a mask says there are, where it does and the model takes a length; else
/// themselves.
template <class Model, class Mask, class Pieces = InOneGo>
ATTUNE_INLINE auto pieces_of(const Mask& mask, const Pieces& pieces = {}) {
  if constexpr (kSaysLength<Mask> && kTakesLength<Model>) {
    return FirstTokens<Pieces, kTokens<Model>>(pieces, length_of<kTokens<Model>>(mask));
  } else {
    return pieces;
  }
}
/// Rows of y behind its tokens become zeros.
template <class Pieces, class Y>
ATTUNE_INLINE void clear_behind([[maybe_unused]] const Pieces& pieces, [[maybe_unused]] const Y& y) {
  if constexpr (kHasLength<Pieces>) {
    for (int i = pieces.template count<Y::rows>(); i < Y::rows; ++i) {
      for (int j = 0; j < Y::cols; ++j) y(i, j) = typename Y::Scalar(0);
    }
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
