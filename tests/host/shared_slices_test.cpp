#include <attune/host/shared_slices.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <attune/execution/pass.hpp>

#include "check.hpp"
#include "host/slices_done.hpp"

namespace {

using namespace attune;
using host::SharedPass, host::SharedSlices, host::ThreadPool;

constexpr int kThreadCounts[] = {1, 2, 3, 5, 16};

// Threads that share out whatever there is.
struct Threads {
  ThreadPool pool;
  SharedPass pass;
  explicit Threads(int threads) : pool(threads), pass(pool, 1) {}
};

TEST(SharedSlices, run_every_row_and_element_once_in_order) {
  for (const int count : kThreadCounts) {
    Threads threads(count);
    for (int round = 0; round < 100; ++round) {
      check::SlicesDone done, expected;
      expected.fill(RunToCompletion{});
      EXPECT_EQ(threads.pass.run(&done, [&](const SharedSlices& slices) { done.fill(slices); }), Status::kOk);
      EXPECT_EQ(done.rows, expected.rows);
      EXPECT_EQ(done.elements, expected.elements);
      EXPECT_EQ(done.sum, 1000);
    }
  }
}

TEST(SharedSlices, cover_only_the_first_tokens) {
  Threads threads(3);
  for (int length = 1; length <= 103; ++length) {
    std::array<std::atomic<int>, 103> rows{}, at_once{};
    std::array<std::atomic<int>, 206> elements{};
    int none = 0;
    (void)threads.pass.run(&none, [&](const SharedSlices& all) {
      const detail::FirstTokens<103> tokens{length};
      const NoMask mask;
      const auto context = Context(mask, all, tokens, tokens);
      context.tokens<103, 1>([&]<int count>(auto first) {
        for (int i = 0; i < rows_in<count>(first); ++i) ++rows[static_cast<std::size_t>(first + i)];
      });
      context.tokens_at_once<103, 10, 1>([&]<int count>(auto first) {
        static_assert(count <= 10);
        for (int i = 0; i < rows_in<count>(first); ++i) ++at_once[static_cast<std::size_t>(first + i)];
      });
      context.token_elements<103, 2, 1>([&](int first, int count) {
        for (int i = first; i < first + count; ++i) ++elements[static_cast<std::size_t>(i)];
      });
    });
    for (int i = 0; i < 103; ++i) {
      const auto row = static_cast<std::size_t>(i);
      EXPECT_LE(rows[row], 1);
      EXPECT_LE(at_once[row], 1);
      EXPECT_GE(rows[row] + at_once[row], i < length ? 2 : 0);
      EXPECT_LE(rows[row] + at_once[row], i < length + 10 ? 2 : 0);
    }
    for (int i = 0; i < 206; ++i) EXPECT_EQ(elements[static_cast<std::size_t>(i)], i < 2 * length ? 1 : 0);
  }
}

TEST(SharedSlices, run_on_several_threads_with_their_own_scratch) {
  Threads threads(4);
  std::array<std::thread::id, 4> of_thread;
  std::array<int, 4> scratch{};
  std::atomic<int> arrived = 0;
  (void)threads.pass.run(scratch.data(), [&](const SharedSlices& slices) {
    Context(NoMask{}, slices)
        .template rows<16, 1>([&]<int>(int first) {  // nobody leaves before all are there
          ++arrived;
          while (arrived < 4) std::this_thread::yield();
          int* own = slices.own(scratch.data());
          *own += 1;
          of_thread[static_cast<std::size_t>(first / 4)] = std::this_thread::get_id();
        });
  });
  EXPECT_EQ(scratch, (std::array{1, 1, 1, 1}));
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(of_thread[i] != of_thread[j]);
  }
}

TEST(SharedSlices, little_work_stays_on_one_thread) {
  ThreadPool pool(4);
  SharedPass pass(pool, 1000);
  const auto threads_of = [&](auto work, int most) {
    std::array<int, 4> scratch{};
    std::atomic<int> arrived = 0;
    (void)pass.run(scratch.data(), [&](const SharedSlices& slices) {
      Context(NoMask{}, slices).template rows<16, decltype(work)::value>([&]<int>(int) {
        if (++*slices.own(scratch.data()) == 1) ++arrived;
        while (arrived < most) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(300));  // others would come by
      });
    });
    return static_cast<int>(4 - std::count(scratch.begin(), scratch.end(), 0));
  };
  EXPECT_EQ(threads_of(std::integral_constant<int, 124>{}, 1), 1);  // 1984 in all: less than two shares
  EXPECT_EQ(threads_of(std::integral_constant<int, 125>{}, 2), 2);
}

TEST(SharedSlices, refused_input_ends_the_pass_on_all_threads) {
  for (const int count : kThreadCounts) {
    Threads threads(count);
    int none = 0;
    for (const Status status : {Status::kInvalidToken, Status::kOk}) {
      int behind = 0;
      std::atomic<int> answers = 0;
      const Status refused = threads.pass.run(&none, [&](const SharedSlices& slices) {
        slices.stage([] {});
        const Status answer = slices.answer([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(500));  // others wait for it
          return status;
        });
        if (answer != status) ++answers;
        if (answer == Status::kOk) slices.stage([&] { ++behind; });
      });
      EXPECT_EQ(refused, status);
      EXPECT_EQ(answers, 0);
      EXPECT_EQ(behind, status == Status::kOk ? 1 : 0);
    }
  }
}

}  // namespace
