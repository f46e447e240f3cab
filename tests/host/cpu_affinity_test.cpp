#include <attune/host/cpu_affinity.hpp>
#include <attune/host/thread_pool.hpp>

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>
#endif

#if defined(__linux__)

namespace {

cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  return cores;
}

// Whether the other threads of a pool may use the core that its caller is put on.
bool others_may_use(attune::host::ThreadPool& pool, std::size_t core) {
  cpu_set_t alone;
  CPU_ZERO(&alone);
  CPU_SET(core, &alone);
  EXPECT_EQ(sched_setaffinity(0, sizeof alone, &alone), 0);
  std::atomic<int> arrived = 0, using_it = 0;
  const int threads = pool.threads();
  pool.for_each(threads, [&](int thread, int) {  // nobody leaves before all are there
    const cpu_set_t cores = cores_of_this_thread();
    if (thread != 0 && CPU_ISSET(core, &cores)) ++using_it;
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
  return using_it > 0;
}
void expect_others_may_use(attune::host::ThreadPool& pool, const cpu_set_t& cores, bool may) {
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) EXPECT_EQ(others_may_use(pool, core), may) << core;
  }
}

}  // namespace

TEST(CpuAffinity, leaves_the_callers_affinity_alone) {
  const cpu_set_t before = cores_of_this_thread();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one core";
  attune::host::ThreadPool pool(2);
  for (int round = 0; round < 2; ++round) expect_others_may_use(pool, before, false);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(CpuAffinity, is_shared_if_there_are_too_few_cores) {
  const cpu_set_t before = cores_of_this_thread();
  attune::host::ThreadPool pool(CPU_COUNT(&before) + 1);
  expect_others_may_use(pool, before, true);
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(CpuAffinity, threads_of_one_core_alone_stay_on_it) {
  const cpu_set_t before = cores_of_this_thread();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  {
    attune::host::ThreadPool pool(2);
    std::atomic<int> calls = 0;
    pool.for_each(10, [&](int, int) {
      const cpu_set_t cores = cores_of_this_thread();
      EXPECT_TRUE(CPU_EQUAL(&cores, &one));
      ++calls;
    });
    EXPECT_EQ(calls, 10);
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

#endif

TEST(CpuAffinity, has_nothing_to_do_without_threads) { attune::host::CpuAffinity().keep_free_of({}); }
