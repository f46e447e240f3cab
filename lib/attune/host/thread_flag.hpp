// A number by which threads wait for each other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include <attune/kernels/ops/pause.hpp>

namespace ATTUNE_NAMESPACE::host {

/// A number that only rises, alone on its cache line. Writes before publish() and add() are visible to a
/// thread that has read the new number.
class alignas(64) ThreadFlag {
 public:
  /// Sets the number, which is larger than before, and wakes those who wait.
  void publish(std::uint32_t number) {
    value_.store(number, std::memory_order_release);
    value_.notify_all();
  }
  /// Adds to the number, and wakes those who wait.
  void add(std::uint32_t number) {
    value_.fetch_add(number, std::memory_order_acq_rel);
    value_.notify_all();
  }
  /// Back to zero. No thread may be waiting.
  void reset() { value_.store(0, std::memory_order_relaxed); }

  /// Whether it becomes at least `number` within a few microseconds.
  [[nodiscard]] bool reaches(std::uint32_t number) const {
    for (int look = 0; look < 300; ++look) {
      if (value() >= number) return true;
      kernels::pause();
    }
    return false;
  }
  /// Returns the value once it is at least `number`. Polls for a moment, then sleeps.
  std::uint32_t wait_for(std::uint32_t number) const {
    using Clock = std::chrono::steady_clock;
    if (reaches(number)) return value();
    for (const auto end = Clock::now() + std::chrono::microseconds(50); Clock::now() < end;) {
      if (value() >= number) return value();
      std::this_thread::yield();
    }
    std::uint32_t now = value();
    for (; now < number; now = value()) value_.wait(now, std::memory_order_acquire);
    return now;
  }

 private:
  [[nodiscard]] std::uint32_t value() const { return value_.load(std::memory_order_acquire); }

  std::atomic<std::uint32_t> value_ = 0;
};

}  // namespace ATTUNE_NAMESPACE::host
