// Inputs and targets of a model, for a whole batch: sequence after sequence.
//
// Each is a matrix or an array of ids: token ids if the first layer looks them up (embedding.hpp), classes if
// the loss sets kClassTargets (cross_entropy.hpp). Ids can be invalid at run time, so a model that reads ids
// returns a Status.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>

#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Whether any type is const, as the decltype of a constexpr object is. Its trainer is the one without const.
template <class... Types>
concept SomeConst = (std::is_const_v<Types> || ...);

template <class Loss, class Output>
struct TargetOf {
  using type = Output;
};
template <class Loss, class Output>
  requires(Loss::kClassTargets)
struct TargetOf<Loss, Output> {
  using type = std::array<int, std::size_t{Output::rows}>;
};

// One mask for all sequences of a batch, or one per sequence in an array or a span.
template <class Masks>
struct OneMaskOf {
  using type = Masks;
};
template <class Masks>
  requires(!AttentionMask<Masks> && requires { typename Masks::value_type; })
struct OneMaskOf<Masks> {
  using type = std::remove_cv_t<typename Masks::value_type>;
};
template <class Masks>
using OneMask = typename OneMaskOf<Masks>::type;
template <class Masks>
concept OneForAll = std::is_same_v<OneMask<Masks>, Masks>;

/// The mask of one sequence.
template <class Masks>
ATTUNE_INLINE constexpr const OneMask<Masks>& mask_of(const Masks& masks, int sequence) {
  return masks[static_cast<std::size_t>(sequence)];
}
template <OneForAll Mask>
ATTUNE_INLINE constexpr const Mask& mask_of(const Mask& mask, int) {
  return mask;
}
/// Whether `sequences` sequences from `first` on have the same mask, compared byte by byte.
template <int sequences, class Masks>
constexpr bool have_one_mask(const Masks& masks, int first) {
  const void* const mask = &mask_of(masks, first);
  for (int i = 1; i < sequences; ++i) {
    if (std::memcmp(&mask_of(masks, first + i), mask, sizeof(OneMask<Masks>)) != 0) return false;
  }
  return std::has_unique_object_representations_v<OneMask<Masks>>;
}
template <int sequences, OneForAll Mask>
constexpr bool have_one_mask(const Mask&, int) {
  return true;
}
/// Whether Masks are valid for the model and batch. Compile error for masks that the model would ignore, and
/// for too few masks.
template <class Model, class Masks, int batch>
constexpr bool check_masks() {
  if constexpr (!OneForAll<Masks> && AttentionMask<OneMask<Masks>>) {
    static_assert(Holds<(decltype(std::span(std::declval<const Masks&>()))::extent == std::size_t{batch})>,
                  "attune::Trainer: pass one mask for the batch, or one for each sequence in a std::array or "
                  "std::span of that size");
  }
  return check_mask<Model, OneMask<Masks>>();
}
/// The loss of a call that names none.
template <class Loss, class Masks>
ATTUNE_INLINE decltype(auto) default_loss() {
  if constexpr (std::is_default_constructible_v<Loss>) {
    return Loss{};
  } else {
    static_assert(Holds<!AttentionMask<OneMask<Masks>>>,  // otherwise another error is reported already
                  "attune::Trainer: this loss has class weights; pass it to every call: step(inputs, "
                  "targets, options, NoClipping{}, NoMask{}, loss)");
    return *static_cast<const Loss*>(nullptr);
  }
}

template <class Model, int count>
using InputsOf = Stacked<typename Model::Input, count>;
template <class Loss, class Output, int count>
using TargetsOf = Stacked<typename TargetOf<Loss, Output>::type, count>;

}  // namespace ATTUNE_NAMESPACE::detail
