// One sequence on several threads of a PC, which share the slices of its layers
// (execution/crew_slices.hpp).
//
//   ThreadPool pool(4);
//   SharedPass pass(pool);
//   static EncoderLayer::InferenceScratch scratch[4];
//   pass.run(scratch, [&](const SharedSlices& slices) {
//     EncoderLayer::forward(parameters, x, y, scratch[0], Context(CausalMask{}, slices));
//   });
//
// Each thread takes its own share of a slice, and after a moment also shares that nobody has taken. No thread
// waits for one that a busy machine wakes late: the late thread finds everything done.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <attune/core/status.hpp>
#include <attune/execution/crew_slices.hpp>
#include <attune/host/thread_flag.hpp>
#include <attune/host/thread_pool.hpp>

namespace ATTUNE_NAMESPACE::host {

/// State shared by the threads of one pass.
class SharedPass {
 public:
  /// The least work of a share (execution/slices.hpp). Less does not pay for waiting for another thread.
  static constexpr int kWorkOfShare = 1 << 12;
  static constexpr int kElements = 64;  // whole packets and cache lines

  /// Runs on all threads of `pool`, which must outlive it, in shares of at least `work_of_share`, which is
  /// positive.
  explicit SharedPass(ThreadPool& pool, int work_of_share = kWorkOfShare)
      : pool_(pool),
        work_of_share_(work_of_share),
        taken_(std::make_unique<Taken[]>(static_cast<std::size_t>(pool.threads()))) {}

  /// Calls forward(slices) on every thread. Returns when all slices are done: Status::kOk, or the error that
  /// ended them early. `forward` fills scratch[0]; scratch[i] belongs to thread i of threads(). Call it from
  /// one thread at a time.
  template <class Scratch, class Forward>
  Status run(Scratch* scratch, const Forward& forward);

  [[nodiscard]] int threads() const { return pool_.threads(); }

 private:
  friend CrewSlices<SharedPass>;

  // The error that ended the pass early; otherwise kOk.
  Status refused() const { return refused_.load(std::memory_order_relaxed); }
  // Called by a share. Threads that wait for it see the Status.
  void refuse(Status status) { refused_.store(status, std::memory_order_relaxed); }

  // Starts at the first slice. No thread may be under way.
  void begin() {
    done_.reset();
    refused_.store(Status::kOk, std::memory_order_relaxed);
    for (int i = 0; i < threads(); ++i) of_share(i).store(0, std::memory_order_relaxed);
  }
  // The number of shares for this work, at most `most`.
  [[nodiscard]] int shares_of(std::int64_t work, int most) const {
    return static_cast<int>(
        std::clamp<std::int64_t>(work / work_of_share_, 1, (std::max)(1, (std::min)(most, threads()))));
  }
  // Calls body(share) for the shares of a slice that no other thread has taken, once the shares of all
  // earlier slices are done. Takes the shares of threads that do not come.
  template <class Body>
  void compute(CrewWalk& walk, int shares, const Body& body) {
    const int thread = walk.member, slice = walk.slices++, before = walk.shares;
    walk.shares += shares;
    bool& alone = walk.alone;
    const auto compute_one = [&](int share) {
      if (!take(share, slice)) return false;
      wait_for(before);
      body(share);
      done_.add(1);
      return true;
    };
    if (thread < shares) compute_one(thread);
    if (!alone && done_.reaches(static_cast<std::uint32_t>(before + shares))) return;
    alone = false;
    for (int share = 0; share < shares; ++share) {
      if (compute_one(share)) alone = true;
    }
  }
  // Returns when all shares of the walk's slices are done; their writes are then visible.
  void wait_for(const CrewWalk& walk) { wait_for(walk.shares); }
  void wait_for(int shares) { (void)done_.wait_for(static_cast<std::uint32_t>(shares)); }

  static constexpr std::size_t kCacheLine = 64;
  struct alignas(kCacheLine) Taken {
    std::atomic<int> slices;
  };

  std::atomic<int>& of_share(int share) { return taken_[static_cast<std::size_t>(share)].slices; }
  // Whether the caller gets this share of a slice. Earlier slices are complete, so their shares are
  // taken.
  bool take(int share, int slice) {
    std::atomic<int>& slices = of_share(share);
    int taken = slices.load(std::memory_order_relaxed);
    while (taken <= slice) {
      if (slices.compare_exchange_weak(taken, slice + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  ThreadPool& pool_;
  const int work_of_share_;
  ThreadFlag done_;  // shares, of all slices
  std::atomic<Status> refused_ = Status::kOk;
  const std::unique_ptr<Taken[]> taken_;  // for each share, the number of its slices taken
};

/// The slices of a sequence, for one of its threads.
using SharedSlices = CrewSlices<SharedPass>;

template <class Scratch, class Forward>
Status SharedPass::run(Scratch* scratch, const Forward& forward) {
  begin();
  pool_.for_each(threads(), [&](int thread, int) {
    CrewWalk walk(thread, scratch);
    forward(SharedSlices(*this, walk));
  });
  return refused();
}

}  // namespace ATTUNE_NAMESPACE::host
