#include <attune/host/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <set>

#include <gtest/gtest.h>

using attune::host::ThreadPool;

TEST(ThreadPool, every_index_is_called_once) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 5, 100}) {
      std::array<int, 100> calls{};  // plain integers: for_each() orders what the threads write
      for (int round = 1; round <= 50; ++round) {
        pool.for_each(count, [&calls](int, int index) { ++calls[static_cast<std::size_t>(index)]; });
        for (int index = 0; index < 100; ++index) {
          ASSERT_EQ(calls[static_cast<std::size_t>(index)], index < count ? round : 0);
        }
      }
    }
  }
}

TEST(ThreadPool, data_of_one_thread_needs_no_lock) {
  ThreadPool pool(3);
  std::array<int, 3> calls{};
  std::array<std::set<std::thread::id>, 3> ids;
  for (int round = 0; round < 200; ++round) {
    pool.for_each(20, [&](int thread, int) {
      ++calls[static_cast<std::size_t>(thread)];
      ids[static_cast<std::size_t>(thread)].insert(std::this_thread::get_id());
    });
  }
  EXPECT_EQ(calls[0] + calls[1] + calls[2], 200 * 20);
  EXPECT_EQ(ids[0], std::set{std::this_thread::get_id()});
  EXPECT_LE(ids[1].size(), 1u);
  EXPECT_LE(ids[2].size(), 1u);
}

TEST(ThreadPool, threads_work_at_the_same_time) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived = 0;
    pool.for_each(3, [&arrived](int, int) {  // nobody leaves before all are there
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
    });
    ASSERT_EQ(arrived, 3);
  }
}

TEST(ThreadPool, each_thread_of_one_may_have_another) {
  ThreadPool outer(3);
  std::array<ThreadPool, 3> inner{ThreadPool(2), ThreadPool(2), ThreadPool(2)};
  std::array<std::array<int, 10>, 12> calls{};
  for (int round = 1; round <= 20; ++round) {
    outer.for_each(12, [&](int thread, int index) {
      auto& of_index = calls[static_cast<std::size_t>(index)];
      inner[static_cast<std::size_t>(thread)].for_each(
          10, [&of_index](int, int each) { ++of_index[static_cast<std::size_t>(each)]; });
    });
    for (const auto& of_index : calls) {
      for (const int count : of_index) ASSERT_EQ(count, round);
    }
  }
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
    once.for_each(8, [](int, int) {});
  }
}

TEST(ThreadPool, sleeps_between_runs) {
  ThreadPool pool(4);
  pool.for_each(8, [](int, int) {});
  std::timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double seconds = static_cast<double>(after.tv_sec - before.tv_sec) +
                         1e-9 * static_cast<double>(after.tv_nsec - before.tv_nsec);
  EXPECT_LT(seconds, 0.05);
}
