// Threads of the test as ranks. What is sent is not copied before it is received, so that memory which
// changes too early shows as wrong bits, and for ThreadSanitizer as a race.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <attune/host/ranks.hpp>

namespace check {

class ThreadRing {
 public:
  explicit ThreadRing(int size)
      : links_(static_cast<std::size_t>(size)), gone_(static_cast<std::size_t>(size)) {}

  class Rank final : public attune::host::Ranks {
   public:
    Rank(ThreadRing& ring, int rank) : ring_(ring), rank_(rank) {}
    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int size() const override { return static_cast<int>(ring_.links_.size()); }
    void send(std::span<const std::byte> bytes) override {
      const std::lock_guard lock(ring_.mutex_);
      ring_.link(rank_).push_back(bytes);
      ring_.changed_.notify_all();
    }
    void receive(std::span<std::byte> bytes) override {
      const int before = (rank_ + size() - 1) % size();
      auto& link = ring_.link(before);
      std::unique_lock lock(ring_.mutex_);
      ring_.changed_.wait(lock, [&] { return !link.empty() || ring_.gone(before); });
      if (link.empty()) throw std::runtime_error("rank " + std::to_string(before) + " is gone");
      if (link.front().size() != bytes.size()) throw std::logic_error("messages of different sizes");
      std::copy(link.front().begin(), link.front().end(), bytes.begin());
      link.pop_front();
      ring_.changed_.notify_all();
    }
    void settle() override {
      auto& link = ring_.link(rank_);
      std::unique_lock lock(ring_.mutex_);
      const int next = (rank_ + 1) % size();
      ring_.changed_.wait(lock, [&] { return link.empty() || ring_.gone(next); });
      if (!link.empty()) throw std::runtime_error("rank " + std::to_string(next) + " is gone");
    }

   private:
    ThreadRing& ring_;
    const int rank_;
  };

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    gone_[static_cast<std::size_t>(rank)] = 1;
    changed_.notify_all();
  }

 private:
  std::deque<std::span<const std::byte>>& link(int from) { return links_[static_cast<std::size_t>(from)]; }
  [[nodiscard]] bool gone(int rank) const { return gone_[static_cast<std::size_t>(rank)] != 0; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<std::span<const std::byte>>> links_;  // from each rank to the next
  std::vector<char> gone_;
};

/// Calls body(ranks) on `size` ranks; what each of them has thrown, empty where nothing.
template <class Body>
std::vector<std::string> on_ranks(int size, const Body& body) {
  ThreadRing ring(size);
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRing::Rank ranks(ring, rank);
      try {
        body(ranks);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
      }
      ring.leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace check
