// One sequence on several threads: the slices of its layers (execution/slices.hpp), shared out.
//
//   ThreadPool pool(4);
//   SharedPass pass(pool);
//   static EncoderLayer::InferenceScratch scratch[4];
//   pass.run(scratch, [&](const SharedSlices& slices) {
//     EncoderLayer::forward(parameters, x, y, scratch[0], Context(CausalMask{}, slices));
//   });
//
// Every thread goes through the same sequence of slices. The rows or elements of a slice are cut into a
// share for each thread. Little work has fewer shares, and a single slice one. Each
// thread takes its own share, and those that after a moment nobody has taken: a thread that a busy machine
// wakes late is not waited for, and one that comes at last finds everything done. A share begins when all of
// the slices before it are done. Who computes it decides no bit, and neither does into how many a slice is
// cut.
//
// All threads fill one tape and one scratch. Data for more than one row (own()) go to the same place in
// the thread's own scratch.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

#include <attune/core/status.hpp>
#include <attune/execution/slices.hpp>
#include <attune/host/thread_pool.hpp>
#include <attune/kernels/ops/pause.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host {

/// Shared state of the threads that go through one sequence of slices.
class SharedPass {
 public:
  /// Less work than this (execution/slices.hpp) is not worth another thread: a share has to pay for waiting
  /// for the others.
  static constexpr int kWorkOfShare = 1 << 12;

  /// On all threads of a pool, in shares of at least so much work, which is positive. The pool has to outlive
  /// it.
  explicit SharedPass(ThreadPool& pool, int work_of_share = kWorkOfShare)
      : pool_(pool),
        work_of_share_(work_of_share),
        taken_(std::make_unique<Taken[]>(static_cast<std::size_t>(pool.threads()))) {}

  /// Calls forward(slices) on every thread and returns when all slices are done: Status::kOk, or why they
  /// have ended early. `forward` fills scratch[0]; scratch[i] is thread i's own, of threads() in all. Called
  /// from one thread at a time.
  template <class Scratch, class Forward>
  Status run(Scratch* scratch, const Forward& forward);

  [[nodiscard]] int threads() const { return pool_.threads(); }

 private:
  friend class SharedSlices;

  // Why the pass has ended early; kOk where it has not.
  [[nodiscard]] Status refused() const { return refused_.load(std::memory_order_relaxed); }
  // Called by a share: whoever waits for it sees the Status.
  void refuse(Status status) { refused_.store(status, std::memory_order_relaxed); }

  // From the first slice on. No thread is under way.
  void begin() {
    done_.store(0, std::memory_order_relaxed);
    refused_.store(Status::kOk, std::memory_order_relaxed);
    for (int i = 0; i < threads(); ++i) of_share(i).store(0, std::memory_order_relaxed);
  }
  // Into how many shares so much work is cut, of at most `most`.
  [[nodiscard]] int shares_of(std::int64_t work, int most) const {
    return static_cast<int>(
        std::clamp<std::int64_t>(work / work_of_share_, 1, (std::max)(1, (std::min)(most, threads()))));
  }
  // Calls body(share) for the shares of slice number `slice` that no other thread has taken, when the
  // `before` shares of all slices in front of it are done. Takes shares of other threads that do not come:
  // `alone` tells whether they missed the last slice.
  template <class Body>
  void compute(int thread, int slice, int before, int shares, bool& alone, const Body& body) {
    const auto compute_one = [&](int share) {
      if (!take(share, slice)) return false;
      wait_for(before);
      body(share);
      done_.fetch_add(1, std::memory_order_acq_rel);
      done_.notify_all();
      return true;
    };
    if (thread < shares) compute_one(thread);
    if (!alone && look_out_for(before + shares)) return;
    alone = false;
    for (int share = 0; share < shares; ++share) {
      if (compute_one(share)) alone = true;
    }
  }
  // Whether so many shares are done within a moment, in which threads with as much work end.
  bool look_out_for(int shares) {
    for (int look = 0; look < kLooks; ++look) {
      if (done_.load(std::memory_order_acquire) >= shares) return true;
      kernels::pause();
    }
    return false;
  }
  // Returns when so many shares are done; their writes are then visible.
  void wait_for(int shares) {
    using Clock = std::chrono::steady_clock;
    if (look_out_for(shares)) return;
    for (const auto end = Clock::now() + std::chrono::microseconds(50); Clock::now() < end;) {
      if (done_.load(std::memory_order_acquire) >= shares) return;
      std::this_thread::yield();
    }
    for (int done = done_.load(std::memory_order_acquire); done < shares;
         done = done_.load(std::memory_order_acquire)) {
      done_.wait(done, std::memory_order_acquire);
    }
  }

  static constexpr std::size_t kCacheLine = 64;
  static constexpr int kLooks = 300;  // some microseconds
  struct alignas(kCacheLine) Taken {
    std::atomic<int> slices;
  };

  std::atomic<int>& of_share(int share) { return taken_[static_cast<std::size_t>(share)].slices; }
  // Whether this share of a slice is the caller's. Slices in front have been gone through, so their shares
  // have been taken.
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
  alignas(kCacheLine) std::atomic<int> done_ = 0;  // shares, of all slices
  std::atomic<Status> refused_ = Status::kOk;
  const std::unique_ptr<Taken[]> taken_;  // of each share, up to which slice it is taken
};

/// The slices of a sequence, for one of the threads that go through it.
class SharedSlices : public attune::detail::WholeSequence {
 public:
  static constexpr bool kRunsToCompletion = false;
  /// How far a thread is.
  struct Walk {
    SharedPass& pass;             // that it is part of
    const int thread;             // whose it is
    const std::ptrdiff_t to_own;  // from the common scratch to the thread's, in bytes
    int slices = 0;               // gone through
    int shares = 0;               // of these
    bool alone = false;           // as far as is known
  };

  /// Layers copy them; all copies refer to one walk.
  explicit SharedSlices(Walk& walk) : walk_(&walk) {}

  /// The place of a pointer into the common scratch in the thread's own.
  template <class Scalar>
  Scalar* own(Scalar* scratch) const {
    return reinterpret_cast<Scalar*>(reinterpret_cast<std::uintptr_t>(scratch) +
                                     static_cast<std::uintptr_t>(walk_->to_own));
  }

  /// Runs a body that is a stage, on one thread.
  template <class Body>
  void stage(Body&& body) const {
    share_out(1, [&](int) { body(); });
  }
  /// The same of a body that answers; all threads have its answer.
  template <class Body>
  Status answer(Body&& body) const {
    SharedPass& pass = walk_->pass;
    share_out(1, [&](int) {
      const Status status = body();
      if (status != Status::kOk) pass.refuse(status);
    });
    pass.wait_for(walk_->shares);
    return pass.refused();
  }
  /// At least the first `used` rows, and the rest of a block.
  template <int most, int at_once, int work, class Body>
  void rows(int used, Body&& body) const {
    constexpr int kBlock = (std::min)(block_of(most), at_once), kRest = most % kBlock;
    constexpr int kMany = (std::max)(kBlock, (std::min)(most / 2, at_once) / kBlock * kBlock);
    const int blocks = (used + kBlock - 1) / kBlock;
    const int shares = walk_->pass.shares_of(std::int64_t{work} * used, blocks);
    share_out(shares, [&](int share) {
      int first = part(blocks, share, shares) * kBlock;
      const int end = part(blocks, share + 1, shares) * kBlock, whole = (std::min)(end, most - kRest);
      if constexpr (kMany > kBlock) {
        for (; first + kMany <= whole; first += kMany) body.template operator()<kMany>(first);
      }
      for (; first < whole; first += kBlock) body.template operator()<kBlock>(first);
      if constexpr (kRest > 0) {
        if (first < end) body.template operator()<kRest>(first);
      }
    });
  }
  template <int most, int work, class Body>
  void elements(int used, Body&& body) const {
    constexpr int kBlock = 64;  // whole packets, whole lines of the cache
    const int blocks = (used + kBlock - 1) / kBlock;
    const int shares = walk_->pass.shares_of(std::int64_t{work} * used, blocks);
    share_out(shares, [&](int share) {
      const int first = part(blocks, share, shares) * kBlock;
      body(first, (std::min)(part(blocks, share + 1, shares) * kBlock, used) - first);
    });
  }

 private:
  // Of `rows` rows so many are computed together: a sixteenth, so that a few threads have as much each, but
  // a register tile.
  static constexpr int block_of(int rows) { return (std::min)(rows, (std::max)(1, (rows + 63) / 64) * 4); }
  // Where part `index` of `parts` begins.
  static int part(int count, int index, int parts) {
    return static_cast<int>(static_cast<std::int64_t>(count) * index / parts);
  }
  template <class Body>
  void share_out(int shares, const Body& body) const {
    const int slice = walk_->slices++, before = walk_->shares;
    walk_->shares += shares;
    walk_->pass.compute(walk_->thread, slice, before, shares, walk_->alone, body);
  }

  Walk* walk_;
};

template <class Scratch, class Forward>
Status SharedPass::run(Scratch* scratch, const Forward& forward) {
  begin();
  pool_.for_each(threads(), [&](int thread, int) {
    const auto address = [&](int i) { return reinterpret_cast<std::uintptr_t>(scratch + i); };
    SharedSlices::Walk walk{*this, thread, static_cast<std::ptrdiff_t>(address(thread) - address(0))};
    forward(SharedSlices(walk));
  });
  return refused();
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::host
