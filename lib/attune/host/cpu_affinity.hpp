// Keeps worker threads off the core of their caller.
//
// A system may wake a thread on its caller's busy core, and move it to another core only after milliseconds.
// Kernels of small virtual machines do this; two threads are then no faster than one.
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

namespace ATTUNE_NAMESPACE::host {

/// The core that a caller's threads were last kept off. Does nothing on systems other than Linux.
class CpuAffinity {
 public:
  /// Restricts the threads to the cores that the caller could use when the object was made, except the
  /// caller's current one. With fewer cores than threads, it does not restrict them. Makes one system call
  /// per thread if the caller changed its core, otherwise none.
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

}  // namespace ATTUNE_NAMESPACE::host

#undef ATTUNE_SETS_AFFINITY
