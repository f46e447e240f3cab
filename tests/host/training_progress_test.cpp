#include <attune/host/training_progress.hpp>

#include <vector>

#include <gtest/gtest.h>

namespace {

using attune::host::duration_text;
using attune::host::TrainingProgress;
using std::chrono::milliseconds;

struct Written {
  std::vector<std::string> lines;
  [[nodiscard]] TrainingProgress::Write write() {
    return [this](std::string_view text) { lines.emplace_back(text); };
  }
};

}  // namespace

TEST(TrainingProgress, durations_are_readable) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(0.4), "0 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(59.6), "1 min 00 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(2 * 3600 + 10 * 60 + 59), "2 h 10 min");
}

TEST(TrainingProgress, through_a_pipe_it_is_ten_lines) {
  Written written;
  TrainingProgress progress(1000, false, written.write());
  const auto start = TrainingProgress::Clock::now();
  for (int step = 0; step < 1000; ++step) progress.step_done(0.5f, start);
  ASSERT_EQ(written.lines.size(), 10u);
  EXPECT_EQ(written.lines[2], "  step 300 of 1000  loss 0.5000  0 s left\n");
  EXPECT_EQ(written.lines[9], "  step 1000 of 1000  loss 0.5000\n");
}

TEST(TrainingProgress, through_a_pipe_a_slow_run_reports_now_and_then) {
  Written written;
  TrainingProgress progress(1'000'000, false, written.write());
  const auto start = TrainingProgress::Clock::now();
  for (int step = 1; step <= 60; ++step) progress.step_done(2, start + milliseconds(1000 * step));
  ASSERT_EQ(written.lines.size(), 2u);
  EXPECT_EQ(written.lines[0].find("  step 3"), 0u) << written.lines[0];
  EXPECT_NE(written.lines[0].find(" h "), std::string::npos) << written.lines[0];
}

TEST(TrainingProgress, on_a_terminal_it_overwrites_its_line) {
  Written written;
  TrainingProgress progress(200, true, written.write());
  const auto start = TrainingProgress::Clock::now();
  progress.step_done(1.25f, start + milliseconds(1));  // too soon to be drawn
  EXPECT_TRUE(written.lines.empty());
  for (int step = 2; step <= 100; ++step) progress.step_done(1.25f, start + milliseconds(step * 1000));
  progress.validated(0.9512);
  const std::string before = written.lines.back();
  EXPECT_EQ(before.find("\r  [########........] 50 %  loss 1.2500  1 min "), 0u) << before;
  for (int step = 101; step <= 200; ++step) progress.step_done(1.25f, start + milliseconds(step * 1000));
  EXPECT_EQ(written.lines.back().find("\r  [################] 100 %  loss 1.2500  accuracy 95.1 %"), 0u);
  EXPECT_EQ(written.lines.back().find("left"), std::string::npos);
  EXPECT_GE(written.lines.back().size(), written.lines[written.lines.size() - 2].size());
  for (const std::string& line : written.lines) {
    EXPECT_EQ(line.find('\n'), std::string::npos);
    EXPECT_LE(line.size(), 80u);
  }
  progress.end("the end");
  EXPECT_EQ(written.lines[written.lines.size() - 2], "\n");
  EXPECT_EQ(written.lines.back(), "  the end\n");
}

TEST(TrainingProgress, the_time_left_is_that_of_the_steps_so_far) {
  Written written;
  TrainingProgress progress(100, false, written.write());
  const auto start = TrainingProgress::Clock::now();
  for (int step = 1; step <= 50; ++step) progress.step_done(1, start + milliseconds(step * 6000));
  EXPECT_EQ(written.lines.back(), "  step 50 of 100  loss 1.0000  5 min 00 s left\n");
}

TEST(TrainingProgress, the_loss_is_smoothed) {
  Written written;
  TrainingProgress progress(2, false, written.write());
  progress.step_done(2.0f);
  progress.step_done(1.0f);
  EXPECT_EQ(written.lines.back(), "  step 2 of 2  loss 1.9800\n");
}

TEST(TrainingProgress, is_silent_without_a_place_to_write) {
  TrainingProgress progress(2, false, nullptr);
  progress.step_done(2.0f);
  progress.step_done(1.0f);
  progress.end("unheard");
}
