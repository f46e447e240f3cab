// Biases of scores by relative position: pairs of a query and a key that share one trained number per head.
//
//   s(h, i, j) + T[h, entry(i, j)]
//
// Shaw et al., "Self-Attention with Relative Position Representations", 2018 (clipped distances); Raffel et
// al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020 (T5's
// buckets); Liu et al., "Swin Transformer", 2021 (offsets on a grid); Bao et al., "BEiT", 2022 (with a class
// token); Graham et al., "LeViT", 2021 (distances on a grid).
#pragma once

#include <array>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE {

/// The pairs of a query and a key that share an entry of a table.
enum class RelativePositions {
  kNone = 0,      // no table
  kDistance = 1,  // the same key − query, limited to ±max_distance
  kBuckets = 2,   // T5's encoder: half of the buckets for keys after the query. Each half has buckets of one
                  // distance, then of distances that grow geometrically up to max_distance
  kCausalBuckets = 3,  // T5's decoder: all buckets for keys before the query; later keys are in the first one
  kGrid = 4,           // the same offset (dy, dx) on a grid of tokens
  kGridDistance = 5,   // the same (|dy|, |dx|)
};

/// A table of biases by relative position.
struct RelativeBias {
  RelativePositions kind = RelativePositions::kNone;  // which pairs share an entry
  int max_distance = 128;                             // of kDistance and buckets, in [1, 32768]
  int buckets = 32;                                   // of kBuckets (even) and kCausalBuckets, at most 128
  int rows = 0;                                       // of a grid, whose tokens come row by row
  int cols = 0;                                       // of a grid
  int prefix = 0;                                     // tokens before the grid, such as a class token

  /// Tokens of a prefix and a grid.
  [[nodiscard]] constexpr int tokens() const { return prefix + rows * cols; }
  /// Whether tokens are on a grid.
  [[nodiscard]] constexpr bool on_grid() const {
    return kind == RelativePositions::kGrid || kind == RelativePositions::kGridDistance;
  }
  /// Entries per head. A prefix has three: as query, as key, as both. They come last.
  [[nodiscard]] constexpr int entries() const {
    if (kind == RelativePositions::kNone) return 0;
    if (kind == RelativePositions::kDistance) return 2 * max_distance + 1;
    if (!on_grid()) return buckets;
    return grid_entries() + (prefix > 0 ? 3 : 0);
  }
  /// Entries of pairs without a prefix.
  [[nodiscard]] constexpr int grid_entries() const {
    return kind == RelativePositions::kGrid ? (2 * rows - 1) * (2 * cols - 1) : rows * cols;
  }
  /// Buckets of one side.
  [[nodiscard]] constexpr int side() const {
    return kind == RelativePositions::kBuckets ? buckets / 2 : buckets;
  }
  /// Buckets of one side that have one distance each.
  [[nodiscard]] constexpr int exact() const { return side() / 2; }
};

namespace detail {

/// The first distance of each bucket with geometric growth: the least n with
/// (n / exact)^count ≥ (max_distance / exact)^k, where `count` is the number of these buckets.
template <RelativeBias bias>
inline constexpr auto kFirstOfBuckets = [] {
  constexpr int kExact = bias.exact(), kCount = bias.side() - kExact;
  constexpr double kLimit = bias.max_distance;
  std::array<int, std::size_t{kCount}> first{};
  const auto power = [](double base) {
    double result = 1;
    for (int i = 0; i < kCount; ++i) result *= base;
    return result;
  };
  double bound = 1;
  int n = kExact;
  for (int& of : first) {
    while (power(double(n) / kExact) < bound) ++n;
    of = n;
    bound *= kLimit / kExact;
  }
  return first;
}();

/// The entry of a query and a key, by their positions. On a grid, both are one of its tokens or of the
/// prefix.
template <RelativeBias bias>
constexpr int relative_entry(int query, int key) {
  constexpr RelativePositions kKind = bias.kind;
  if constexpr (kKind == RelativePositions::kDistance) {
    constexpr int kMax = bias.max_distance;
    return clamp(key - query, -kMax, kMax) + kMax;
  } else if constexpr (bias.on_grid()) {
    constexpr int kPrefix = bias.prefix, kCols = bias.cols, kRows = bias.rows;
    if (kPrefix > 0 && (query < kPrefix || key < kPrefix)) {
      return bias.grid_entries() + (key >= kPrefix ? 0 : query >= kPrefix ? 1 : 2);
    }
    const int q = query - kPrefix, k = key - kPrefix;
    const int dy = q / kCols - k / kCols, dx = q % kCols - k % kCols;
    return kKind == RelativePositions::kGrid ? (dy + kRows - 1) * (2 * kCols - 1) + dx + kCols - 1
                                             : (dy < 0 ? -dy : dy) * kCols + (dx < 0 ? -dx : dx);
  } else {
    constexpr bool kTwoSided = kKind == RelativePositions::kBuckets;
    constexpr int kExact = bias.exact();
    const int later = kTwoSided && key > query ? bias.side() : 0;
    const int distance = kTwoSided && key > query ? key - query : larger(query - key, 0);
    if (distance < kExact) return later + distance;
    int bucket = kExact;
    for (const int next : kFirstOfBuckets<bias>) bucket += distance >= next;
    return later + bucket - 1;
  }
}

/// Whether the sizes of a table are valid for so many queries, from position `offset` on, and keys.
constexpr bool valid_relative_bias(const RelativeBias& bias, int seq_len, int kv_len, int offset) {
  if (bias.kind == RelativePositions::kNone) return true;
  if (bias.on_grid()) {
    return bias.rows > 0 && bias.cols > 0 && bias.prefix >= 0 && bias.rows <= kv_len && bias.cols <= kv_len &&
           bias.tokens() == kv_len && offset <= kv_len - seq_len;
  }
  if (bias.max_distance < 1 || bias.max_distance > 32768) return false;
  if (bias.kind == RelativePositions::kDistance) return true;
  const bool even = bias.kind == RelativePositions::kCausalBuckets || bias.buckets % 2 == 0;
  return even && bias.exact() > 0 && bias.buckets <= 128 && bias.max_distance > bias.exact();
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
