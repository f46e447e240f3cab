// The mask of a layer's scores: the masks of its options, combined with the context's mask.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/attention/alibi.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/mask.hpp>
#include <attune/core/memory.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE::detail {

template <AttentionMask Mask>
constexpr const Mask& both_masks(const NoMask&, const Mask& mask) {
  return mask;
}
template <AttentionMask Mask>
  requires(!std::is_same_v<Mask, NoMask>)
constexpr Mask both_masks(const Mask& mask, const NoMask&) { return mask; }
template <AttentionMask First, AttentionMask Second>
constexpr auto both_masks(const First& first, const Second& second) {
  return first && second;
}

template <AttentionShape shape>
constexpr auto window_of() {
  constexpr AttentionWindow kOwn = shape.window;
  return first_if<kOwn.hides()>(
      SlidingWindowMask{kOwn.left, kOwn.right, kOwn.sinks, shape.offset, kOwn.own_key}, NoMask{});
}
template <AttentionShape shape>
constexpr auto alibi_of() {
  return first_if<shape.alibi>(AlibiBias<shape.num_heads>{shape.offset}, NoMask{});
}

/// Applies a mask to the first kMasked keys. Every query sees the appended keys at `at`. If `at` is an int,
/// all keys after them are hidden.
template <AttentionMask Mask, int kMasked, class At = std::integral_constant<int, kMasked>>
struct MaskOfFirstKeys {
  Mask mask;
  [[no_unique_address]] At at = {};

  template <ScoreShape scores>
  static constexpr void fits() {
    check_fit<ScoreShape{scores.num_heads, scores.seq_len, kMasked}, Mask>();
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int head, int query, Scalar* row) const {
    if constexpr (std::is_same_v<At, int>) {
      Scalar appended[std::size_t{kv_len - kMasked}];
      copy_n(row + at, kv_len - kMasked, appended);
      mask.template hide<kMasked>(head, query, row);
      mask.template bias<kMasked>(head, query, row);
      copy_n(appended, kv_len - kMasked, row + at);
      hide_from(row, at + kv_len - kMasked, kv_len);
    } else {
      mask.template hide<kMasked>(head, query, row);
    }
  }
  template <int kv_len, class Scalar>
  constexpr void bias([[maybe_unused]] int head, [[maybe_unused]] int query,
                      [[maybe_unused]] Scalar* row) const {
    if constexpr (!std::is_same_v<At, int>) mask.template bias<kMasked>(head, query, row);
  }
};

/// `mask` itself if the shape has no masks of its own, else a copy of both. Appended keys begin at `at`.
template <class Parts, AttentionMask Mask, class At = std::integral_constant<int, Parts::kShape.kv_len>>
constexpr decltype(auto) with_options(const auto& parameters, const Mask& mask, [[maybe_unused]] At at = {}) {
  constexpr const AttentionShape& shape = Parts::kShape;
  constexpr auto kConstant = both_masks(window_of<shape>(), alibi_of<shape>());
  const auto own = both_masks(kConstant, Parts::Relative::mask(parameters.relative));
  using Both = std::remove_cvref_t<decltype(both_masks(own, mask))>;
  if constexpr (shape.num_keys() == shape.kv_len || std::is_same_v<Both, NoMask>) {
    return both_masks(own, mask);
  } else {
    return MaskOfFirstKeys<Both, shape.kv_len, At>{both_masks(own, mask), at};
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
