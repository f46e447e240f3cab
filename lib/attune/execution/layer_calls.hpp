// Calls a layer in a context (context.hpp), even if the layer takes none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/checked_step.hpp>
#include <attune/execution/context.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/own_layer.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Whether Mask is a mask. A mask for a layer that would ignore it is a compile error.
template <class Layer, class Mask>
constexpr bool check_mask() {
  static_assert(
      AttentionMask<Mask>,
      "attune: this argument is not a mask; masks have hide and bias (execution/attention_mask.hpp)");
  if constexpr (AttentionMask<Mask> && kMasks<Mask>) {
    static_assert(Holds<TakesMask<Layer>>,
                  "attune: no layer of this model uses a mask; leave it out, or add attention or pooling");
    static_assert(Holds<(kAbilities<Layer>.mask != MaskUse::kPadding || SaysPadding<Mask>)>,
                  "attune: this model uses only a mask's padding, and this mask has none; leave it out, or "
                  "add attention");
    check_fit<kAbilities<Layer>.scores, Mask>();
  }
  return AttentionMask<Mask>;
}

/// A context that asks for a missing ability is a compile error.
template <class Layer, class Context>
constexpr void check_call() {
  constexpr Abilities can = kAbilities<Layer>;
  static_assert(Holds<(can.takes_context || (!can.takes_length && can.mask == MaskUse::kNone))>,
                "attune::IsLayer: kAbilities declares a length or a mask, but no context; set .takes_context "
                "and take a context as the last argument");
  static_assert(
      Holds<(!(Context::kSkipsZeros || Context::kHasLength) || !can.mixes_tokens || can.takes_context)>,
      "attune::IsLayer: this layer mixes tokens but takes neither a mask nor a length, so it would "
      "read padding; declare and take a context, or set .mixes_tokens = false");
}

#if ATTUNE_CHECKED
template <class View>
bool is_aligned(const View& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % alignof(typename View::Scalar) == 0;
}
template <class View>
inline constexpr std::size_t kBytesOfView = sizeof(typename View::Scalar) *
                                            static_cast<std::size_t>((View::rows - 1) * View::row_stride +
                                                                     (View::cols - 1) * View::col_stride + 1);
/// In checked mode: asserts that both views have data, and overlap only if they may be the same.
template <bool kMayBeSame, class X, class Y>
void check_views(const X& x, const Y& y) {
  ATTUNE_ASSERT(x.data != nullptr && y.data != nullptr, "a view of nothing; look at CheckedView::status");
  ATTUNE_ASSERT(is_aligned(x) && is_aligned(y), "a view of misaligned numbers");
  const bool same = static_cast<const void*>(x.data) == static_cast<const void*>(y.data);
  ATTUNE_ASSERT((kMayBeSame && same) || !overlap(x.data, kBytesOfView<X>, y.data, kBytesOfView<Y>),
                "a layer's inputs and outputs overlap; use separate memory");
}
template <bool, int size, class Y>
void check_views(const Ids<size>& ids, const Y& y) {
  ATTUNE_ASSERT(ids.begin() != nullptr && y.data != nullptr,
                "a view of nothing; look at CheckedView::status");
}
#endif

/// Calls forward with `arguments`, without the context if the layer takes none; the call is then one stage.
/// The stage that reads ids refuses invalid ones.
template <class Layer, bool checks = ATTUNE_CHECKED != 0, AnyContext Call, class... Arguments>
ATTUNE_INLINE ForwardResult<Layer> forward_in(const Call& context, Arguments&&... arguments) {
  check_call<Layer, Call>();
  if constexpr (checks) {
    return checked_forward<Layer>(
        context, [&] { return forward_in<Layer, false>(context, arguments...); }, arguments...);
  } else if constexpr (kAbilities<Layer>.takes_context) {
    return Layer::forward(without_collected(arguments)...,
                          first_if<TakesMask<Layer>>(context, context.unmasked()));
  } else if constexpr (TakesIds<Layer>) {
    return context.answer([&] { return Layer::forward(without_collected(arguments)...); });
  } else if constexpr (RunsByToken<Layer> && (Call::kHasLength || !Call::kRunsToCompletion)) {
    forward_by_token<Layer>(context, arguments...);
  } else {
    context.stage([&]() ATTUNE_INLINE_LAMBDA { Layer::forward(without_collected(arguments)...); });
  }
}
/// The same, with kOk if forward returns nothing.
template <class Layer, AnyContext Call, class... Arguments>
ATTUNE_INLINE Status forward_status(const Call& context, Arguments&&... arguments) {
  return status_of([&]() ATTUNE_INLINE_LAMBDA {
    return forward_in<Layer>(context, std::forward<Arguments>(arguments)...);
  });
}
/// Calls body(context, gradients) to add to `gradients` more than once, or in the body of more than one
/// layer.
template <AnyContext Call, class Gradients, class Body>
ATTUNE_INLINE void add_in_batch_order(const Call& context, Gradients& gradients, const Body& body) {
  if constexpr (Call::kInBatchOrder) {
    context.slices().order().run(gradients, [&](auto& of_batch) { body(context.to_completion(), of_batch); });
  } else {
    body(context, gradients);
  }
}
template <class Layer, bool checks = ATTUNE_CHECKED != 0, AnyContext Call, class... Arguments>
void backward_in(const Call& context, Arguments&&... arguments);
// The same for a layer whose parts do not wait for their turns themselves.
template <class Layer, AnyContext Call>
void backward_in_batch_order(const Call& context, const auto& parameters, const auto& x, auto& tape,
                             const auto& dy, auto&& dx, auto& gradients, auto& scratch) {
  using Order = std::remove_cvref_t<decltype(context.slices().order())>;
  const auto run = [&](const auto& own, auto& to) {
    backward_in<Layer>(own, parameters, x, tape, dy, dx, to, scratch);
  };
  if constexpr (std::is_empty_v<typename Layer::Parameters>) {
    run(context.to_completion(), gradients);
  } else if constexpr (AddsOnce<Layer> && !(Order::kStagesAreTurns && Call::kHasLength)) {
    // Behind a length a layer may have fewer stages than in the sequence before.
    run(context.with_slices(context.slices().order().slices_of_one_addition()), gradients);
  } else {
    add_in_batch_order(context, gradients, run);
  }
}
/// Calls backward with `arguments`: parameters, x, tape, dy, dx, gradients, scratch. The mask is forward's.
template <class Layer, bool checks, AnyContext Call, class... Arguments>
ATTUNE_INLINE void backward_in(const Call& context, Arguments&&... arguments) {
  check_call<Layer, Call>();
  if constexpr (checks) {
    checked_backward<Layer>(
        context, [&] { backward_in<Layer, false>(context, arguments...); }, arguments...);
  } else if constexpr ((Collects<Arguments> || ...)) {
    collect<Layer>([&](auto&&... own) { backward_in<Layer>(context, own...); }, arguments...);
  } else if constexpr (Call::kInBatchOrder && kAbilities<Layer>.additions != Additions::kByParts) {
    backward_in_batch_order<Layer>(context, arguments...);
  } else if constexpr (kAbilities<Layer>.takes_context) {
    Layer::backward(std::forward<Arguments>(arguments)...,
                    first_if<TakesMask<Layer>>(context, context.without_mask()));
  } else if constexpr (RunsByToken<Layer> && (Call::kSkipsZeros || Call::kHasLength || Call::kStopsWithin)) {
    backward_by_token<Layer>(context, arguments...);
  } else {
    context.stage([&]() ATTUNE_INLINE_LAMBDA { Layer::backward(std::forward<Arguments>(arguments)...); });
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
