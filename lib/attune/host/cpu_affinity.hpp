// Threads that work beside their caller stay off its core.
//
// A system may wake a thread on the core that its caller keeps busy, and find it another one only after
// milliseconds (kernels of small virtual machines do): then two threads are no faster than one.
#pragma once

#include <span>
#include <thread>

#include <attune/kernels/policy.hpp>

#if defined(__linux__) && !defined(__ANDROID__)
#define ATTUNE_SETS_AFFINITY 1
#include <pthread.h>
#include <sched.h>
#else
#define ATTUNE_SETS_AFFINITY 0
#endif

namespace attune::inline ATTUNE_ARITHMETIC::host {

/// Which core a caller's threads were last kept off. Elsewhere than on Linux it does nothing.
class CpuAffinity {
 public:
  /// The threads may use all cores that this one might when the object was made, but for the one that it is
  /// on now; as before where those are fewer than the threads. A system call a thread if it has changed its
  /// core, otherwise nothing.
  void keep_free_of([[maybe_unused]] std::span<std::thread> threads) {
#if ATTUNE_SETS_AFFINITY
    const int core = sched_getcpu();
    if (core == core_ || core < 0 || core >= CPU_SETSIZE) return;
    core_ = core;
    cpu_set_t others = usable_;
    CPU_CLR(static_cast<std::size_t>(core), &others);
    if (static_cast<std::size_t>(CPU_COUNT(&others)) < threads.size()) return;
    for (std::thread& thread : threads)
      pthread_setaffinity_np(thread.native_handle(), sizeof others, &others);
#endif
  }

 private:
#if ATTUNE_SETS_AFFINITY
  static cpu_set_t usable_by_this_thread() {
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
    return cores;
  }

  const cpu_set_t usable_ = usable_by_this_thread();
  int core_ = -1;
#endif
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::host

#undef ATTUNE_SETS_AFFINITY
