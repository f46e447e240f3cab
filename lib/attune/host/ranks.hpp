// Processes that train one model together, on one or many machines: ranks 0, 1, …, in a ring. Never included
// by attune.hpp. host/mpi.hpp implements them over MPI.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host {

/// A process's place in the ring, and its two neighbors: the rank before 0 is the last one. The next rank
/// receives messages in the order and sizes of sending. If a neighbor is gone or hangs, a function throws or
/// ends the program instead of waiting forever, and names the neighbor by its number.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const = 0;  // in [0, size())
  [[nodiscard]] virtual int size() const = 0;
  /// Sends to the next rank, without waiting for it. `bytes` must not change until settle() returns.
  virtual void send(std::span<const std::byte> bytes) = 0;
  /// Receives from the previous rank, and waits for it.
  virtual void receive(std::span<std::byte> bytes) = 0;
  /// Waits until everything sent is on its way, and its memory is free.
  virtual void settle() = 0;

  /// Whether it is the last rank.
  [[nodiscard]] bool is_last() const { return rank() + 1 == size(); }
};

/// Copies `bytes` of rank 0 to every rank.
inline void hand_out(Ranks& ranks, std::span<std::byte> bytes) {
  if (ranks.rank() > 0) ranks.receive(bytes);
  if (!ranks.is_last()) ranks.send(bytes);
  ranks.settle();
}

/// The values of all ranks, in order, on every rank.
template <class Value>
[[nodiscard]] std::vector<Value> of_all_ranks(Ranks& ranks, const Value& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const int size = ranks.size();
  std::vector<Value> all(static_cast<std::size_t>(size), mine);
  // Round r brings the value of the rank r places before.
  const auto place = [&](int before) {
    return std::span(all).subspan(static_cast<std::size_t>((ranks.rank() + size - before) % size), 1);
  };
  for (int before = 1; before < size; ++before) {
    ranks.send(std::as_bytes(place(before - 1)));
    ranks.receive(std::as_writable_bytes(place(before)));
  }
  ranks.settle();
  return all;
}

}  // namespace ATTUNE_NAMESPACE::host
