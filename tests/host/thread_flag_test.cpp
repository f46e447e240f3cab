#include <attune/host/thread_flag.hpp>

#include <thread>

#include <gtest/gtest.h>

using attune::host::ThreadFlag;

TEST(ThreadFlag, publishes_writes_made_before_the_number) {
  ThreadFlag flag, answer;
  int written = 0;
  std::thread other([&] {
    EXPECT_EQ(flag.wait_for(1), 1u);
    EXPECT_EQ(written, 17);
    answer.add(2);
    answer.add(3);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the other one sleeps by now
  written = 17;
  flag.publish(1);
  EXPECT_EQ(answer.wait_for(5), 5u);
  other.join();
  EXPECT_TRUE(answer.reaches(4));
  answer.reset();
  EXPECT_FALSE(answer.reaches(1));
}
