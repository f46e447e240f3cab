// Threads that share work, for programs on an operating system. Never included by attune.hpp.
//
//   ThreadPool pool(4);
//   pool.for_each(100, [](int thread, int index) { … });   // by up to four threads, the caller among them
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <attune/host/cpu_affinity.hpp>
#include <attune/host/thread_flag.hpp>
#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host {

/// The number of threads that the process may run at once, at least 1.
[[nodiscard]] inline int available_threads() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? static_cast<int>(cores) : 1;
}

/// A fixed number of threads. Idle threads poll for work for 50 µs, then sleep. The destructor ends them.
class ThreadPool {
 public:
  /// Starts `threads` threads, counting the caller of for_each(). 0 or less: available_threads().
  explicit ThreadPool(int threads = 0) : threads_(threads > 0 ? threads : available_threads()) {
    try {
      for (int thread = 1; thread < threads_; ++thread)
        others_.emplace_back([this, thread] { serve(thread); });
    } catch (...) {  // out of threads: the ones already started must not outlive the pool
      end();
      throw;
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { end(); }

  [[nodiscard]] int threads() const { return threads_; }

  /// Calls body(thread, index) once for every index in [0, count), each on a free thread, and returns when
  /// all calls have returned; their writes are then visible to the caller. Calls with the same `thread`, in
  /// [0, threads()), never overlap. The caller is thread 0; on Linux, the others stay off its core. A thread
  /// that a busy machine wakes too late is not waited for. Call it from one thread at a time. `body` may not
  /// throw, and may not call for_each() of the same pool; another pool is allowed.
  template <class Body>
  void for_each(int count, const Body& body) {
    std::atomic<int> next = 0;
    const auto work = [&](int thread) noexcept {
      for (int index = next++; index < count; index = next++) body(thread, index);
    };
    if (threads_ == 1 || count <= 1) return work(0);
    cpu_affinity_.keep_free_of(others_);
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      call_ = [](const void* of, int thread) { (*static_cast<const decltype(work)*>(of))(thread); };
      ++round_;
    }
    wake_.notify_all();
    work(0);
    {
      const std::lock_guard lock(mutex_);
      work_ = nullptr;
    }
    look_out([this] { return working_ == 0; });
    std::unique_lock lock(mutex_);
    left_.wait(lock, [this] { return working_ == 0; });
  }

 private:
  // Polls for a moment, because sleeping and waking takes longer than small work. Not for long: another
  // program may need the core.
  template <class Happened>
  static void look_out(const Happened& happened) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + std::chrono::microseconds(50); !happened() && Clock::now() < end;) {
      std::this_thread::yield();
    }
  }

  void serve(int thread) noexcept {
    for (unsigned served = 0;;) {
      look_out([&] { return round_ != served; });
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return (work_ != nullptr && round_ != served) || ending_; });
      if (ending_) return;
      served = round_;
      const void* const work = work_;
      ++working_;
      const auto call = call_;
      lock.unlock();
      call(work, thread);
      lock.lock();
      if (--working_ == 0) left_.notify_one();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& other : others_) other.join();
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;
  const void* work_ = nullptr;  // the current work
  void (*call_)(const void*, int) = nullptr;
  std::atomic<unsigned> round_ = 0;  // number of that work, so that no thread joins it twice
  std::atomic<int> working_ = 0;     // threads that have joined and not left
  bool ending_ = false;
  CpuAffinity cpu_affinity_;
  std::vector<std::thread> others_;
};

/// A Crew (execution/crew.hpp) of that many threads, the caller among them.
template <int members>
class Threads : public ThreadPool {
  static_assert(attune::detail::Holds<(members > 0)>, "attune::host::Threads: at least one member");

 public:
  static constexpr int kMembers = members;
  using Flag = ThreadFlag;
  Threads() : ThreadPool(members) {}
};

}  // namespace ATTUNE_NAMESPACE::host
