// The mask that a layer's scores go through: of its shape's options, and the one it is given.
#pragma once

#include <attune/attention/alibi.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/mask.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

template <AttentionMask Mask>
constexpr const Mask& both_masks(const NoMask&, const Mask& mask) {
  return mask;
}
template <AttentionMask First, AttentionMask Second>
constexpr auto both_masks(const First& first, const Second& second) {
  if constexpr (std::is_same_v<Second, NoMask>) {
    return first;
  } else {
    return first && second;
  }
}

template <AttentionShape shape>
constexpr auto window_of() {
  if constexpr (shape.window.hides()) {
    return SlidingWindowMask{shape.window.left, shape.window.right, shape.window.sinks, shape.offset};
  } else {
    return NoMask{};
  }
}
template <AttentionShape shape>
constexpr auto alibi_of() {
  if constexpr (shape.alibi) {
    return AlibiBias<shape.num_heads>{shape.offset};
  } else {
    return NoMask{};
  }
}

/// A mask of the first kv_len keys. Those behind are seen by every query.
template <AttentionMask Mask, int kMasked>
struct MaskOfFirstKeys {
  Mask mask;

  template <ScoreShape scores>
  static constexpr void fits() {
    check_fit<ScoreShape{scores.num_heads, scores.seq_len, kMasked}, Mask>();
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int head, int query, Scalar* row) const {
    mask.template hide<kMasked>(head, query, row);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    mask.template bias<kMasked>(head, query, row);
  }
};

/// `mask` itself where the shape adds nothing to it; else a copy with what it adds.
template <AttentionShape shape, AttentionMask Mask>
constexpr decltype(auto) with_options(const Mask& mask) {
  constexpr auto kOwn = both_masks(window_of<shape>(), alibi_of<shape>());
  if constexpr (shape.num_keys() == shape.kv_len) {
    return both_masks(kOwn, mask);
  } else {
    const auto& both = both_masks(kOwn, mask);
    using Both = std::remove_cvref_t<decltype(both)>;
    if constexpr (std::is_same_v<Both, NoMask>) {
      return NoMask{};
    } else {
      return MaskOfFirstKeys<Both, shape.kv_len>{both};
    }
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
