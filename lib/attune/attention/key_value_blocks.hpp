// Keys and values of a stream (execution/stream.hpp), and the ones that a token attends to.
//
// Tokens are stored in blocks of kCacheBlock; block b of the stream is in place b mod kBlocks. There is one
// place more than a window can touch, so no place has visible tokens of two blocks. Sums over blocks run from
// oldest to newest. They have the order and the lanes of sums over a whole row (kernels/ops/reduce.hpp,
// kernels/ops/gemm.hpp). Blocks of sinks have their own places in front, and are never overwritten.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <attune/execution/stream.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/int8_products.hpp>
#include <attune/kernels/ops/kv_attention.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The places of a stream's tokens.
template <CacheShape shape>
struct CachePlaces {
  static constexpr int kBlock = kernels::kCacheBlock;
  static constexpr bool kIsRing = shape.window > 0;
  static constexpr int kSinkBlocks = (shape.sinks + kBlock - 1) / kBlock;
  static constexpr int kBlocks =
      kIsRing ? (shape.window + kBlock - 2) / kBlock + 1 : (shape.capacity + kBlock - 1) / kBlock;
  static constexpr int kSlots = (kSinkBlocks + kBlocks) * kBlock;

  /// Slot of a token: the place of its block, and its index in the block.
  template <class Position>
  static constexpr int slot(Position position) {
    return (kSinkBlocks + static_cast<int>(position / kBlock % kBlocks)) * kBlock +
           static_cast<int>(position % kBlock);
  }
  /// Calls body(slot) for each slot that stores a token: one, or two of a sink in a ring.
  ATTUNE_INLINE static void for_each_slot(std::uint64_t position, const auto& body) {
    body(slot(position));
    if (shape.sinks > 0 && position < std::uint64_t{shape.sinks}) body(static_cast<int>(position));
  }
};

/// The keys that the token at `position` attends to, from oldest to newest, in runs of adjacent slots. Their
/// scores lie on an axis of blocks() blocks; each key is in the lane of its position.
template <CacheShape shape>
class VisibleKeys {
  using Places = CachePlaces<shape>;
  static constexpr int kBlock = kernels::kCacheBlock, kDepthBlock = kernels::kDepthBlock;
  static_assert(kDepthBlock % kBlock == 0);
  // With a capacity, positions have 32 bits: 64-bit division is slow on a microcontroller.
  using Position = std::conditional_t<Places::kIsRing, std::uint64_t, std::uint32_t>;

 public:
  struct Run {
    int slot, axis, count;
    int distance;     // from the token back to the first lane of the run's first block
    bool begins_sum;  // the run's first key begins a sum: products sum blocks of kDepthBlock positions
  };
  /// Sums begin at multiples of kDepthBlock. Runs begin there too, after the sinks, and at the ring's start.
  static constexpr int kMaxRuns = Places::kSlots / kDepthBlock + 5;

  explicit constexpr VisibleKeys(std::uint64_t position) : position_(static_cast<Position>(position)) {
    const Position end = position_ + 1;
    const Position first = Places::kIsRing && end > shape.window ? end - shape.window : 0;
    if (shape.sinks > 0) {
      add(0, smaller(first, Position{shape.sinks}), [](Position at) { return static_cast<int>(at); });
    }
    add(first, end, Places::template slot<Position>);
  }

  [[nodiscard]] constexpr int blocks() const { return blocks_; }
  [[nodiscard]] constexpr const Run* begin() const { return runs_; }
  [[nodiscard]] constexpr const Run* end() const { return runs_ + count_; }

 private:
  // Adds positions `first` to `end`, excluding `end`, on new blocks of the axis.
  constexpr void add(Position first, Position end, auto slot_of) {
    if (first == end) return;
    const Position origin = first - first % kBlock;  // at the next block of the axis
    const int before = blocks_ * kBlock;
    for (Position at = first; at < end;) {
      const int slot = slot_of(at);
      const Position sum = at / kDepthBlock;
      const Position to = smallest({end, (sum + 1) * kDepthBlock, at + Position(Places::kSlots - slot)});
      constexpr Position kFarthest = (std::numeric_limits<int>::max)();
      const Position distance = smaller(position_ - (at - at % kBlock), kFarthest);
      runs_[count_++] = {slot, before + static_cast<int>(at - origin), static_cast<int>(to - at),
                         static_cast<int>(distance), sum != sum_};
      sum_ = sum;
      at = to;
    }
    blocks_ += static_cast<int>((end - origin + kBlock - 1) / kBlock);
  }

  Run runs_[std::size_t{kMaxRuns}];
  Position position_;
  int count_ = 0;
  int blocks_ = 0;
  Position sum_ = (std::numeric_limits<Position>::max)();
};

/// Keys and values of kHeads heads, for all kept tokens.
template <class Scalar, int kHeads, int d_k, int d_v, CacheShape shape>
struct KeyValueBlocks {
  using Places = CachePlaces<shape>;
  struct Head {
    Tensor<Scalar, Places::kSlots / Places::kBlock * d_k, Places::kBlock> keys;  // [d_k, kBlock] per block
    Tensor<Scalar, Places::kSlots, d_v> values;
    Scalar most_squares;  // the largest |k|² so far; infinity after a key that is not finite
  };
  Head heads[std::size_t{kHeads}];

  /// Identifies the memory layout.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("keys in columns of blocks, and the most squares", Places::kIsRing, Places::kSinkBlocks,
                  Places::kBlocks, Places::kBlock);

  /// Stores key[kHeads · d_k] and value[kHeads · d_v] of the token at `position`.
  void append(std::uint64_t position, const Scalar* key, const Scalar* value) {
    Places::for_each_slot(position, [&](int slot) { put(slot, key, value); });
  }

 private:
  void put(int slot, const Scalar* key, const Scalar* value) {
    const int first = slot / Places::kBlock * d_k, lane = slot % Places::kBlock;
    for (Head& head : heads) {
      for (int k = 0; k < d_k; ++k) head.keys(first + k, lane) = key[k];
      const Scalar squares = kernels::sum_of_few_squares<d_k>(key);
      key += d_k;
      constexpr auto kInfinity = std::numeric_limits<Scalar>::infinity();
      if (!(squares <= head.most_squares)) head.most_squares = squares < kInfinity ? squares : kInfinity;
      std::memcpy(static_cast<void*>(&head.values(slot, 0)), value, sizeof(Scalar) * d_v);
      value += d_v;
    }
  }
};

/// Keys and values in 8 bits, row by row. A token has a scale for its key and one for its value, as in batch
/// products.
template <int kHeads, int d_k, int d_v, CacheShape shape>
struct Int8KeyValueBlocks {
  using Places = CachePlaces<shape>;
  struct Head {
    float key_scales[std::size_t{Places::kSlots}];
    float value_scales[std::size_t{Places::kSlots}];
    std::int8_t keys[std::size_t{Places::kSlots * d_k}];
    std::int8_t values[std::size_t{Places::kSlots * d_v}];
  };
  Head heads[std::size_t{kHeads}];

  /// Identifies the memory layout.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("keys and values in 8 bits, in rows", Places::kIsRing, Places::kSinkBlocks, Places::kBlocks,
                  Places::kBlock);

  /// Stores key[kHeads · d_k] and value[kHeads · d_v] of the token at `position`.
  void append(std::uint64_t position, const float* key, const float* value) {
    Places::for_each_slot(position, [&](int slot) { put(slot, key, value); });
  }

 private:
  static float quantize(int length, const float* from, std::int8_t* to) {
    return kernels::quantize_row(
        length, [from](int i) ATTUNE_INLINE_LAMBDA { return from[i]; }, to);
  }
  void put(int slot, const float* key, const float* value) {
    for (Head& head : heads) {
      head.key_scales[slot] = quantize(d_k, key, head.keys + slot * d_k);
      head.value_scales[slot] = quantize(d_v, value, head.values + slot * d_v);
      key += d_k;
      value += d_v;
    }
  }
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
