#include <attune/host/interrupt.hpp>

#include <gtest/gtest.h>

using attune::host::Interrupt;

TEST(Interrupt, is_recorded) {
  std::signal(SIGINT, SIG_DFL);
  {
    const Interrupt interrupt;
    EXPECT_FALSE(interrupt.requested());
    std::raise(SIGINT);
    EXPECT_TRUE(interrupt.requested());
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_DFL);
  const Interrupt next;
  EXPECT_FALSE(next.requested());
}

TEST(InterruptDeathTest, a_second_one_ends_the_program) {
  const auto twice = [] {
    std::signal(SIGINT, SIG_DFL);
    const Interrupt interrupt;
    std::raise(SIGINT);
    std::raise(SIGINT);
  };
  EXPECT_EXIT(twice(), testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptDeathTest, restores_the_previous_handler) {
  const auto afterwards = [] {
    std::signal(SIGINT, SIG_DFL);
    { const Interrupt interrupt; }
    std::raise(SIGINT);
  };
  EXPECT_EXIT(afterwards(), testing::KilledBySignal(SIGINT), "");
}

TEST(Interrupt, stays_ignored_if_it_was_ignored) {
  std::signal(SIGINT, SIG_IGN);
  {
    const Interrupt interrupt;
    std::raise(SIGINT);
    EXPECT_FALSE(interrupt.requested());
  }
  EXPECT_EQ(std::signal(SIGINT, SIG_DFL), SIG_IGN);
}

TEST(InterruptDeathTest, unwritten_output_survives_a_pipe_without_a_reader) {
  const auto written = [](bool interrupted) {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGPIPE, SIG_DFL);
    const Interrupt interrupt;
    if (interrupted) std::raise(SIGINT);
    std::raise(SIGPIPE);
    std::exit(7);
  };
  EXPECT_EXIT(written(true), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(written(false), testing::KilledBySignal(SIGPIPE), "");
}
