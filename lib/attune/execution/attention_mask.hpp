// The interface of a mask, which decides the keys that each query may attend to. attention/mask.hpp has the
// masks.
#pragma once

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// A mask changes one row of scaled scores in place, before softmax, in two passes: `hide` sets hidden keys
/// to −∞, then `bias` adds to the others. `row` has the kv_len scores of one head and one query.
///
/// Optional members:
///   fits<shape>(), a static function: asserts that the mask was made for scores of this ScoreShape;
///   keeps_key<kv_len>(key): false if the key is padding, which no query may attend to. Layers that
///   leave out padding, such as Pooling, call it;
///   kv_end<kv_len>(first_query, queries): one more than the last key that any of these queries may attend
///   to. Attention skips later keys, with the same bits;
///   length(), at least 1: tokens from this index on are padding, as keys, as queries and for the loss, and
///   are not computed (attention/sequence_length.hpp).
template <class Mask>
concept AttentionMask = requires(const Mask& mask, float* row) {
  mask.template hide<8>(0, 0, row);
  mask.template bias<8>(0, 0, row);
};

/// Dimensions of the scores of a mask: a [seq_len, kv_len] matrix per head.
struct ScoreShape {
  int num_heads;
  int seq_len;
  int kv_len;
};

/// Every query attends to every key.
struct NoMask {
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar*) const {}
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

/// Whether a mask hides anything. If so, hidden values have no influence: a factor of zero makes a term zero,
/// even beside NaN or infinity. NoMask has no such cost.
template <class Mask>
inline constexpr bool kMasks = true;
template <>
inline constexpr bool kMasks<NoMask> = false;

namespace detail {

/// Whether a mask marks padding.
template <class Mask>
concept SaysPadding = requires(const Mask& mask) {
  mask.template keeps_key<1>(0);
};

/// Whether key `key` out of `tokens` keys is not padding, according to the mask.
template <int tokens, class Mask>
[[nodiscard]] constexpr bool keeps_key(const Mask&, int) {
  return true;
}
template <int tokens, SaysPadding Mask>
[[nodiscard]] constexpr bool keeps_key(const Mask& mask, int key) {
  return mask.template keeps_key<tokens>(key);
}

/// Whether a mask has a length.
template <class Mask>
concept SaysLength = requires(const Mask& mask) {
  mask.length();
};
/// The mask's length, at most `tokens`.
template <int tokens, class Mask>
[[nodiscard]] constexpr int length_of(const Mask&) {
  return tokens;
}
template <int tokens, SaysLength Mask>
[[nodiscard]] constexpr int length_of(const Mask& mask) {
  return smaller<int>(mask.length(), tokens);
}

/// A mask made for other scores is a compile error.
template <ScoreShape shape, class Mask>
constexpr void check_fit() {
  if constexpr (shape.num_heads > 0 && requires { Mask::template fits<shape>(); }) {
    Mask::template fits<shape>();
  }
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
