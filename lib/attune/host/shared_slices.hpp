// One sequence on several threads, which share the slices of its layers (execution/slices.hpp).
//
//   ThreadPool pool(4);
//   SharedPass pass(pool);
//   static EncoderLayer::InferenceScratch scratch[4];
//   pass.run(scratch, [&](const SharedSlices& slices) {
//     EncoderLayer::forward(parameters, x, y, scratch[0], Context(CausalMask{}, slices));
//   });
//
// Every thread goes through the same sequence of slices. The rows or elements of a slice are divided into one
// share per thread; small slices have fewer shares, or one. Each thread takes its own share, and after a
// moment also shares that nobody has taken. No thread waits for one that a busy machine wakes late: the late
// thread finds everything done. A share begins once all slices before it are done. The bits depend neither on
// the thread of a share nor on the number of shares.
//
// All threads fill one tape and one scratch. Data for more than one row (own()) goes to the same place in the
// thread's own scratch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <attune/core/status.hpp>
#include <attune/execution/slices.hpp>
#include <attune/host/thread_flag.hpp>
#include <attune/host/thread_pool.hpp>

namespace ATTUNE_NAMESPACE::host {

/// State shared by the threads of one pass.
class SharedPass {
 public:
  /// The least work of a share (execution/slices.hpp). Less does not pay for waiting for another thread.
  static constexpr int kWorkOfShare = 1 << 12;

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
  friend class SharedSlices;

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
  // Calls body(share) for the shares of slice number `slice` that no other thread has taken, once the
  // `before` shares of all earlier slices are done. Takes the shares of threads that do not come. `alone`
  // tells whether they missed the last slice.
  template <class Body>
  void compute(int thread, int slice, int before, int shares, bool& alone, const Body& body) {
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
  // Returns when `shares` shares are done; their writes are then visible.
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
class SharedSlices : public attune::detail::WholeSequence {
 public:
  static constexpr bool kRunsToCompletion = false;
  /// A thread's progress.
  struct Walk {
    SharedPass& pass;             // the pass it belongs to
    const int thread;             // its thread
    const std::ptrdiff_t to_own;  // from the common scratch to the thread's, in bytes
    int slices = 0;               // slices passed
    int shares = 0;               // shares in them
    bool alone = false;           // whether other threads missed the last slice
  };

  /// Layers copy this object; all copies refer to one walk.
  explicit SharedSlices(Walk& walk) : walk_(&walk) {}

  /// The position of a pointer into the common scratch, in the thread's own scratch.
  template <class Scalar>
  Scalar* own(Scalar* scratch) const {
    return reinterpret_cast<Scalar*>(reinterpret_cast<std::uintptr_t>(scratch) +
                                     static_cast<std::uintptr_t>(walk_->to_own));
  }

  /// The same, if the rows and elements of a slice are one share.
  [[nodiscard]] SharedSlices in_order() const { return SharedSlices(*walk_, true); }
  /// The same, if they are several.
  [[nodiscard]] SharedSlices in_any_order() const { return SharedSlices(*walk_); }

  /// Runs a body as one stage, on one thread.
  template <class Body>
  void stage(Body&& body) const {
    share_out(1, [&](int) { body(); });
  }
  /// The same for a body with a result; all threads get it.
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
    const int shares = shares_of(std::int64_t{work} * used, blocks);
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
    constexpr int kBlock = 64;  // whole packets and cache lines
    const int blocks = (used + kBlock - 1) / kBlock;
    const int shares = shares_of(std::int64_t{work} * used, blocks);
    share_out(shares, [&](int share) {
      const int first = part(blocks, share, shares) * kBlock;
      body(first, (std::min)(part(blocks, share + 1, shares) * kBlock, used) - first);
    });
  }

 private:
  SharedSlices(Walk& walk, bool in_order) : walk_(&walk), in_order_(in_order) {}

  [[nodiscard]] int shares_of(std::int64_t work, int most) const {
    return in_order_ ? 1 : walk_->pass.shares_of(work, most);
  }
  // Rows computed together: a sixteenth of `rows`, which balances a few threads, but at least a register
  // tile.
  static constexpr int block_of(int rows) { return (std::min)(rows, (std::max)(1, (rows + 63) / 64) * 4); }
  // The start of part `index` of `parts`.
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
  bool in_order_ = false;
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

}  // namespace ATTUNE_NAMESPACE::host
