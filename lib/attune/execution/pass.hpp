// Inference, forward and backward of a whole model, with a mask.
//
//   attune::infer<Model>(parameters, x, y, scratch, CausalMask{});
//   attune::forward<Model>(parameters, x, y, tape, scratch, length);
//   attune::backward<Model>(parameters, x, tape, dy, dx, gradients, scratch, length);
//   attune::infer<Model>(packed, x, y, scratch, CausalMask{}, Int8Products{});
//
// These calls turn mask and length into the context that layers pass on (context.hpp). A mask may have a
// length (attention/sequence_length.hpp): layers that take a length (Abilities, layer.hpp) compute no other
// tokens, and later rows of y and dx become zeros. If any layer of the model takes none, all tokens are
// computed, and the mask hides padding. The set of parameters chooses the products of weights
// (weights/packed_weights.hpp has integers). The last argument chooses the products of two other matrices, as
// in attention and in gradients of weights.
#pragma once

#include <array>

#include <attune/core/memory.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/execution/context.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/kernels/ops/int8_products.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The largest number of tokens in a layer's input, per sequence.
template <class Layer>
inline constexpr int kTokens = Layer::Input::rows;
template <TakesIds Layer>
inline constexpr int kTokens<Layer> = static_cast<int>(std::tuple_size_v<typename Layer::Input>) /
                                      (kIdsOfToken<Layer> * kernels::kSequencesIn<typename Layer::Scalar>);

/// The number of valid tokens, at most `tokens`: the mask's length, if layers can skip tokens.
template <int tokens, bool kTakes, class Mask>
constexpr auto valid_tokens(const Mask& mask) {
  return first_if<(SaysLength<Mask> && kTakes)>(FirstTokens<tokens>{length_of<tokens>(mask)}, AllTokens{});
}

/// Zeroes the rows of y after the valid tokens, as a stage.
template <AnyContext Call, class Y>
ATTUNE_INLINE void clear_behind([[maybe_unused]] const Call& context, [[maybe_unused]] const Y& y) {
  if constexpr (Call::kHasLength && kWanted<Y>) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      for (int i = context.template count<Y::rows>(); i < Y::rows; ++i) {
        for (int j = 0; j < Y::cols; ++j) y(i, j) = typename Y::Scalar(0);
      }
    });
  }
}

/// forward of a whole model. `arguments` are the arguments after y.
template <class Model, AnyContext Call, class Y, class... Arguments>
ATTUNE_INLINE Status forward_pass(const Call& context, const auto& parameters, const auto& x, const Y& y,
                                  Arguments&... arguments) {
#if ATTUNE_CHECKED
  constexpr bool kInference = sizeof...(Arguments) == 1;  // scratch, but no tape
  check_views<kInference ? kAbilities<Model>.output_may_be_input
                         : kAbilities<Model>.backward_may_read_output>(x, y);
#endif
  const Status status = forward_status<Model>(context, parameters, x, y, arguments...);
  if (status == Status::kOk) clear_behind(context, y);
  return status;
}
/// Whether all numbers are finite: kernels::finite() in less flash, for the few numbers of an output.
template <class Scalar>
[[gnu::noinline]] bool few_are_finite(int size, const Scalar* values) {
  Scalar total = 0;
  for (int i = 0; i < size; ++i) total = kernels::add(total, kernels::multiply(values[i], Scalar(0)));
  return total == 0;
}
/// The status of a prediction y: kNotFinite if a number is infinite or NaN. Tokens of padding may have any
/// numbers.
template <class Model, class Mask, class Y>
Status status_of_output(Status status, [[maybe_unused]] const Mask& mask, const Y& y) {
  if (status != Status::kOk || few_are_finite(Y::rows * Y::cols, y.data)) return status;
  if constexpr (SaysPadding<Mask> && Y::rows == kTokens<Model>) {
    for (int i = 0; i < Y::rows; ++i) {
      if (keeps_key<Y::rows>(mask, i) && !few_are_finite(Y::cols, &y(i, 0))) return Status::kNotFinite;
    }
    return Status::kOk;
  }
  return Status::kNotFinite;
}

/// backward of a whole model.
template <class Model, AnyContext Call, class Dx>
ATTUNE_INLINE void backward_pass(const Call& context, const auto& parameters, const auto& x, auto& tape,
                                 const auto& dy, const Dx& dx, auto& gradients, auto& scratch) {
#if ATTUNE_CHECKED
  if constexpr (kWanted<Dx>) {
    check_views<false>(dy, dx);
    check_views<kAbilities<Model>.gradient_may_be_input ||
                !ReadsInput<Model, std::remove_cvref_t<decltype(gradients)>>>(x, dx);
  }
#endif
  backward_in<Model>(context, parameters, x, tape, dy, dx, gradients, scratch);
  clear_behind(context, dx);
}

}  // namespace detail

using kernels::FloatProducts;
using kernels::Int8CacheProducts;
using kernels::Int8Products;

/// The context of a call of `Layer` with a mask, which must outlive it.
template <class Layer, class Mask = NoMask, class Slices = RunToCompletion>
[[nodiscard]] constexpr auto context_for(const Mask& mask ATTUNE_LIFETIME_BOUND = {},
                                         const Slices& slices = {}) {
  if constexpr (detail::check_mask<Layer, Mask>()) {
    const auto tokens = detail::valid_tokens<detail::kTokens<Layer>, detail::TakesLength<Layer>>(mask);
    return Context(mask, slices, tokens, tokens);
  } else {
    return Context<NoMask, Slices>(NoMask{}, slices);
  }
}

namespace detail {

// A mask, or a number or pointer, which is refused with a message. Another class chooses another overload.
template <class Mask>
concept MaskArgument = AttentionMask<Mask> || !std::is_class_v<Mask>;

template <class Layer, class Products, class Mask>
constexpr auto context_with(const Mask& mask ATTUNE_LIFETIME_BOUND, const auto&... slices) {
  static_assert(Holds<(std::is_same_v<Products, FloatProducts> || std::is_same_v<Products, Int8Products> ||
                       std::is_same_v<Products, Int8CacheProducts>)>,
                "attune: the argument after the mask is not a kind of products: use FloatProducts{}, "
                "Int8Products{} or Int8CacheProducts{}");
  return context_for<Layer>(mask, slices...).template with_products<Products>();
}

}  // namespace detail

/// Inference: y[rows, cols] of x[rows, cols] or of token ids. An id outside the vocabulary returns
/// Status::kInvalidToken and writes nothing. Numbers that are not finite go through; a trainer's predict()
/// refuses them. `y` may be `x` if the layer's kAbilities allow it; they may not
/// overlap otherwise.
template <class Layer, class Set = typename Layer::Parameters, class Mask = NoMask,
          class Products = FloatProducts>
detail::ForwardResult<Layer> infer(const Set& parameters, ConstView<typename Layer::Input> x,
                                   View<typename Layer::Output> y, typename Layer::InferenceScratch& scratch,
                                   const Mask& mask = {}, const Products& = {}) {
  return detail::ForwardResult<Layer>(
      detail::forward_pass<Layer>(detail::context_with<Layer, Products>(mask), parameters, x, y, scratch));
}
/// Training: like inference, and fills the tape for backward. `y` may be `x` only with
/// kAbilities.backward_may_read_output.
template <class Layer, class Set = typename Layer::Parameters, class Tape, class Scratch,
          detail::MaskArgument Mask = NoMask, class Products = FloatProducts>
detail::ForwardResult<Layer> forward(const Set& parameters, ConstView<typename Layer::Input> x,
                                     View<typename Layer::Output> y, Tape& tape, Scratch& scratch,
                                     const Mask& mask = {}, const Products& = {}) {
  return detail::ForwardResult<Layer>(detail::forward_pass<Layer>(detail::context_with<Layer, Products>(mask),
                                                                  parameters, x, y, tape, scratch));
}
/// Overwrites dx, from dy, unless NoGradient; adds to the gradients; uses up the tape. The mask is forward's.
/// Values hidden by a mask have no influence.
template <class Layer, class Set = typename Layer::Parameters, class Tape, class Dx, class Gradients,
          class Scratch, detail::MaskArgument Mask = NoMask, class Products = FloatProducts>
void backward(const Set& parameters, ConstView<typename Layer::Input> x, Tape& tape,
              ConstView<typename Layer::Output> dy, Dx&& dx, Gradients& gradients, Scratch& scratch,
              const Mask& mask = {}, const Products& = {}) {
  detail::backward_pass<Layer>(detail::context_with<Layer, Products>(mask), parameters, x, tape, dy,
                               detail::sink<typename Layer::Input>(dx), gradients, scratch);
}

}  // namespace ATTUNE_NAMESPACE
