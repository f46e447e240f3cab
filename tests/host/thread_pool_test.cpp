#include <attune/host/thread_pool.hpp>

#include <array>
#include <atomic>
#include <set>

#include <gtest/gtest.h>

using attune::host::ThreadPool;

TEST(ThreadPool, every_thread_is_called_once_a_run) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    std::array<int, 7> calls{};  // plain integers: run() orders what the threads write
    for (int round = 1; round <= 200; ++round) {
      pool.run([&calls](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
      for (int thread = 0; thread < 7; ++thread) {
        ASSERT_EQ(calls[static_cast<std::size_t>(thread)], thread < threads ? round : 0);
      }
    }
  }
}

TEST(ThreadPool, the_caller_is_thread_zero_and_the_others_are_not) {
  ThreadPool pool(3);
  std::array<std::thread::id, 3> ids;
  pool.run([&ids](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 3u);
}

TEST(ThreadPool, threads_work_at_the_same_time) {
  ThreadPool pool(3);
  std::atomic<int> arrived = 0;
  pool.run([&arrived](int) {  // nobody leaves before all are there
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 3);
}

TEST(ThreadPool, without_a_number_it_has_a_thread_for_every_core) {
  EXPECT_EQ(ThreadPool().threads(), attune::host::available_threads());
  EXPECT_EQ(ThreadPool(-1).threads(), attune::host::available_threads());
  EXPECT_GE(attune::host::available_threads(), 1);
}

TEST(ThreadPool, ends_whether_it_worked_or_not) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool idle(4);
    ThreadPool once(4);
    once.run([](int) {});
  }
}

TEST(ThreadPool, sleeps_between_runs) {
  ThreadPool pool(4);
  pool.run([](int) {});
  std::timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double seconds = static_cast<double>(after.tv_sec - before.tv_sec) +
                         1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(seconds, 0.05);
}
