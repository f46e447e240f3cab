// A window of keys around each query, plus the first keys. Composes with other masks through `&&` (mask.hpp).
#pragma once

#include <limits>

#include <attune/attention/mask.hpp>

namespace ATTUNE_NAMESPACE {

/// A window's length without an end.
inline constexpr int kUnlimited = (std::numeric_limits<int>::max)();

/// Whether a query sees the key at its own position.
enum class OwnKey {
  kSeen = 0,    // yes
  kHidden = 1,  // no (Lee et al., "Vision Transformer for Small-Size Datasets", 2021: LSA)
};

/// Keys that a query at position p sees: p − left … p + right, and the first `sinks` keys before this window
/// (Beltagy et al., "Longformer: The Long-Document Transformer", 2020; Xiao et al., "Efficient Streaming
/// Language Models with Attention Sinks", 2023). {.right = 0} is causal.
struct AttentionWindow {
  int left = kUnlimited;   // keys before the query
  int right = kUnlimited;  // keys after the query
  int sinks = 0;
  OwnKey own_key = OwnKey::kSeen;  // the key at the query's own position

  /// Whether it hides any key.
  [[nodiscard]] constexpr bool hides() const {
    return left != kUnlimited || right != kUnlimited || own_key == OwnKey::kHidden;
  }
};

/// Query i is at position i + offset and sees the keys of its window; key j is at position j. Lengths and
/// positions are at most 2³⁰; left, right and sinks must not be negative.
struct SlidingWindowMask {
  int left = kUnlimited;   // keys before the query
  int right = kUnlimited;  // keys after the query
  int sinks = 0;
  int offset = 0;
  OwnKey own_key = OwnKey::kSeen;  // the key at the query's own position

  template <int kv_len, class Scalar>
  constexpr void hide(int, int query, Scalar* row) const {
    const int position = query + offset;
    // The first key of the window and the first key after it, in [0, kv_len]; no sum overflows.
    const int first = position > left ? (position - left < kv_len ? position - left : kv_len) : 0;
    const int end = right >= kv_len - 1 - position ? kv_len : position + right + 1;
    for (int key = sinks; key < first; ++key) row[key] = detail::kHidden<Scalar>;
    detail::hide_from(row, end, kv_len);
    if (own_key == OwnKey::kHidden && position >= 0 && position < kv_len)
      row[position] = detail::kHidden<Scalar>;
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

}  // namespace ATTUNE_NAMESPACE
