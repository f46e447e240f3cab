// Gradients of several sequences at a time, and their sum in the order of the batch. Needs threads and a
// heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <attune/core/parameters.hpp>
#include <attune/host/thread_pool.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE::host::detail {

inline constexpr std::size_t kCacheLine = 64;

/// A set of gradients; no two sets share a cache line.
template <class Parameters>
struct alignas(kCacheLine) GradientSlot {
  Parameters gradients;
};

/// The number of slots: sequences computed before their gradients are added up. At least one per thread, at
/// most one per sequence. By default, as many as stay in the threads' caches.
template <class Parameters>
int slots_for(int batch, int threads, std::optional<std::size_t> bytes) {
  constexpr std::size_t kBytes = sizeof(GradientSlot<Parameters>);
  const auto count = static_cast<std::size_t>(threads);
  const std::size_t in_cache = (std::max)(std::size_t{2}, (std::size_t{1} << 19) / kBytes);
  const std::size_t slots = bytes ? *bytes / kBytes : count * in_cache;
  return static_cast<int>((std::min)(static_cast<std::size_t>(batch), (std::max)(count, slots)));
}

/// Slots for the gradients of `count` sequences, and one for their sum.
template <class Parameters, class Scalar>
class GradientSlots {
 public:
  GradientSlots(ThreadPool& pool, int count)
      : pool_(pool), count_(count), slots_(std::make_unique<Slot[]>(static_cast<std::size_t>(count) + 1)) {}

  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return (static_cast<std::size_t>(count_) + 1) * sizeof(Slot); }
  Parameters& slot(int index) { return slots_[static_cast<std::size_t>(index)].gradients; }
  Parameters& sum() { return slot(count_); }
  /// The distance in bytes from a slot to the sum.
  [[nodiscard]] std::ptrdiff_t to_sum(int index) const {
    return (count_ - index) * static_cast<std::ptrdiff_t>(sizeof(Slot));
  }
  /// The bytes of the sum from `begin` on, at most `most`.
  std::span<std::byte> chunk(std::size_t begin, std::size_t most) {
    const auto bytes = std::as_writable_bytes(std::span(&sum(), 1));
    return bytes.subspan(begin, (std::min)(most, bytes.size() - begin));
  }

  /// Zeros all slots and the sum. Costs nothing after a batch that ended with an update.
  void begin_batch() {
    for (int index = 0; index <= count_ && !clear_; ++index) set_zero(slot(index));
    clear_ = false;
  }

  /// sum += slot 0, then slot 1, …, for `sequences` slots and the bytes [begin, end) of a set. Then zeros
  /// these bytes of the slots.
  void add(int sequences, std::size_t begin, std::size_t end) {
    for_each_part(begin, end, [&](std::size_t from, std::size_t to) {
      const std::size_t first = from / sizeof(Scalar), size = (to - from) / sizeof(Scalar);
      for (int index = 0; index < sequences; ++index) {
        kernels::move_to(static_cast<int>(size), attune::detail::scalars_of<Scalar>(slot(index)) + first,
                         attune::detail::scalars_of<Scalar>(sum()) + first);
      }
    });
  }

  /// The optimizer's step with `gradients`, which are then zeroed.
  template <class Optimizer>
  void update(const typename Optimizer::Coefficients& coefficients, auto& state, Parameters& gradients) {
    for_each_part(0, sizeof(Parameters), [&](std::size_t from, std::size_t to) {
      Optimizer::for_each_with_moments(
          [&](const TensorPath& path, auto& p, auto& g, auto&... moment) {
            const auto [first, size] = part_of<Optimizer>(g, gradients, from, to);
            if (size == 0) return;
            attune::detail::update_and_clear<Optimizer>(coefficients, path.kind, size, p.data() + first,
                                                        g.data() + first, (moment.data() + first)...);
          },
          state.moments, state.parameters, gradients);
    });
    clear_ = true;
  }

 private:
  using Slot = GradientSlot<Parameters>;
  struct PartOfTensor {
    int first, size;
  };

  // The scalars of a tensor of `set` in the bytes [from, to) of the set. Scalars that are updated together
  // belong to the first of them.
  template <class Optimizer, class Leaf>
  static PartOfTensor part_of(const Leaf& tensor, const Parameters& set, std::size_t from, std::size_t to) {
    constexpr std::size_t kBlock = attune::detail::kUpdateBlockOf<Optimizer, Leaf::size>;
    const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(tensor.data()) -
                                             reinterpret_cast<const std::byte*>(&set));
    const auto index_of = [&](std::size_t byte) {
      const std::size_t end = at + sizeof(Scalar) * static_cast<std::size_t>(tensor.size);
      const std::size_t scalars = (std::clamp(byte, at, end) - at) / sizeof(Scalar);
      return (std::min)(Leaf::size, static_cast<int>((scalars + kBlock - 1) / kBlock * kBlock));
    };
    return {index_of(from), index_of(to) - index_of(from)};
  }
  // Calls body(from, to) for parts of the bytes [begin, end) of a set that fit the first-level cache, each on
  // some thread. Ranges below two parts of 16 KiB stay one part.
  template <class Body>
  void for_each_part(std::size_t begin, std::size_t end, const Body& body) {
    const std::size_t lines = (end - begin + kCacheLine - 1) / kCacheLine,
                      parts = std::clamp<std::size_t>((end - begin) >> 14, 1, 64);
    pool_.for_each(static_cast<int>(parts), [&](int, int number) {
      const auto part = static_cast<std::size_t>(number);
      body(begin + lines * part / parts * kCacheLine,
           (std::min)(end, begin + lines * (part + 1) / parts * kCacheLine));
    });
  }

  ThreadPool& pool_;
  const int count_;
  bool clear_ = true;  // make_unique zeroed them
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace ATTUNE_NAMESPACE::host::detail
