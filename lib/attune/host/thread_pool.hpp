// Threads that wait for work, for programs on an operating system. Never included by attune.hpp.
//
//   ThreadPool pool(4);
//   pool.run([](int thread) { … });   // on four threads, the caller's among them
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <attune/kernels/policy.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host {

/// As many threads as the process may run at once, at least 1.
[[nodiscard]] inline int available_threads() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? static_cast<int>(cores) : 1;
}

/// A fixed number of threads. Between two run() they sleep; the destructor ends them.
class ThreadPool {
 public:
  /// `threads` of them, the caller of run() included; 0 or less: available_threads().
  explicit ThreadPool(int threads = 0) : threads_(threads > 0 ? threads : available_threads()) {
    try {
      for (int thread = 1; thread < threads_; ++thread)
        others_.emplace_back([this, thread] { wait(thread); });
    } catch (...) {  // the system has no more threads: those that have started must not outlive the pool
      end();
      throw;
    }
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() { end(); }

  [[nodiscard]] int threads() const { return threads_; }

  /// Calls work(thread) once on every thread, thread = 0 … threads() − 1, the caller's being 0, and returns
  /// when all calls have. What they wrote is then visible to the caller. `work` may not throw, and may not
  /// call run() of the same pool.
  template <class Work>
  void run(const Work& work) {
    if (threads_ > 1) {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      call_ = [](const void* of, int thread) { (*static_cast<const Work*>(of))(thread); };
      running_ = threads_ - 1;
      ++round_;
    }
    started_.notify_all();
    [&]() noexcept { work(0); }();
    if (threads_ > 1) {
      std::unique_lock lock(mutex_);
      finished_.wait(lock, [this] { return running_ == 0; });
    }
  }

 private:
  void wait(int thread) noexcept {
    for (unsigned seen = 0;;) {
      const void* work = nullptr;
      void (*call)(const void*, int) = nullptr;
      {
        std::unique_lock lock(mutex_);
        started_.wait(lock, [&] { return round_ != seen || ending_; });
        if (ending_) return;
        seen = round_;
        work = work_;
        call = call_;
      }
      call(work, thread);
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) finished_.notify_one();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    started_.notify_all();
    for (std::thread& other : others_) other.join();
  }

  const int threads_;
  std::mutex mutex_;
  std::condition_variable started_;
  std::condition_variable finished_;
  const void* work_ = nullptr;
  void (*call_)(const void*, int) = nullptr;
  unsigned round_ = 0;
  int running_ = 0;
  bool ending_ = false;
  std::vector<std::thread> others_;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::host
