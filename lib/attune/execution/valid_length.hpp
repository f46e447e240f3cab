// How a sequence that is shorter than its layers costs no more than its own length: a mask says how long it
// is (attention/sequence_length.hpp), and layers that take a length (Abilities, execution/layer.hpp) run by
// the slices of its first tokens (FirstTokens, execution/slices.hpp).
//
// Who calls a layer from outside, with a mask alone, begins the length: a trainer, or the layer itself where
// a user calls it. Layers within are called with the slices; where they are not, because one of the model's
// layers takes no length, the mask is padding to them.
#pragma once

#include <array>
#include <tuple>

#include <attune/execution/attention_mask.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/slices.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// How many tokens a layer's input has at most, of a sequence.
template <class Layer>
inline constexpr int kTokens = [] {
  if constexpr (kTakesIds<Layer>) {
    return static_cast<int>(std::tuple_size_v<typename Layer::Input>) /
           kernels::kSequencesIn<typename Layer::Scalar>;
  } else {
    return Layer::Input::rows;
  }
}();

/// `slices` of the first of `tokens` tokens, as many as a mask says; themselves where it says nothing.
template <int tokens, class Mask, class Slices>
ATTUNE_INLINE auto first_tokens([[maybe_unused]] const Mask& mask, const Slices& slices) {
  if constexpr (kBeginsLength<Mask, Slices>) {
    return FirstTokens<Slices, tokens>(slices, length_of<tokens>(mask));
  } else {
    return slices;
  }
}
/// `slices` whose keys and values are the first of `tokens`, as many as a mask says; themselves where it says
/// nothing, or they know.
template <int tokens, class Mask, class Slices>
ATTUNE_INLINE auto with_memory([[maybe_unused]] const Mask& mask, const Slices& slices) {
  if constexpr (kBeginsLength<Mask, std::remove_cvref_t<decltype(memory_of(slices))>>) {
    return WithMemory(slices, first_tokens<tokens>(mask, slices));
  } else {
    return slices;
  }
}
/// `slices` of the tokens that a mask says there are, where it does and the model takes a length; else
/// themselves.
template <class Model, class Mask, class Slices = RunToCompletion>
ATTUNE_INLINE auto slices_of(const Mask& mask, const Slices& slices = {}) {
  if constexpr (kTakesLength<Model>) {
    return first_tokens<kTokens<Model>>(mask, slices);
  } else {
    return slices;
  }
}
/// Rows of y behind its tokens become zeros.
template <class Slices, class Y>
ATTUNE_INLINE void clear_behind([[maybe_unused]] const Slices& slices, [[maybe_unused]] const Y& y) {
  if constexpr (kHasLength<Slices> && kAsked<Y>) {
    for (int i = slices.template count<Y::rows>(); i < Y::rows; ++i) {
      for (int j = 0; j < Y::cols; ++j) y(i, j) = typename Y::Scalar(0);
    }
  }
}

/// A call from outside, whose mask says the length: of that many tokens where the layer takes a length, else
/// of all. arguments: those of forward behind y. Rows of y behind the length become zeros.
template <class Layer, class Mask, class Slices, class Set, class X, class Y, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_of_length(const Mask& mask, const Slices& all, const Set& parameters,
                                               const X& x, const Y& y, Arguments&... arguments) {
  const auto slices = slices_of<Layer>(mask, all);
  const Status status = forward_status<Layer>(slices, mask, parameters, x, y, arguments...);
  if (status == Status::kOk) all([&]() ATTUNE_INLINE_LAMBDA { clear_behind(slices, y); });
  return Outcome<Layer>(status);
}
/// arguments: those of backward in front of the mask. Rows of dx behind the length become zeros.
template <class Layer, class Mask, class Slices, class Dx>
ATTUNE_INLINE void backward_of_length(const Mask& mask, const Slices& all, const auto& parameters,
                                      const auto& x, auto& tape, const auto& dy, const Dx& dx,
                                      auto& gradients, auto& scratch) {
  const auto slices = slices_of<Layer>(mask, all);
  backward_in<Layer>(slices, mask, parameters, x, tape, dy, dx, gradients, scratch);
  all([&]() ATTUNE_INLINE_LAMBDA { clear_behind(slices, dx); });
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
