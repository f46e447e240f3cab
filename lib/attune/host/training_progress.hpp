// Shows the progress of a training run: steps, loss, accuracy, and remaining time. Needs an operating system;
// never included by attune.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host {

/// Writes to standard output without buffering.
inline void write_to_standard_output(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// "42 s", "3 min 05 s", "2 h 10 min".
[[nodiscard]] inline std::string duration_text(double seconds) {
  char text[48];
  const long whole = seconds < 0 ? 0 : seconds < 1e9 ? static_cast<long>(seconds + 0.5) : 1'000'000'000;
  if (whole < 60) {
    std::snprintf(text, sizeof text, "%ld s", whole);
  } else if (whole < 3600) {
    std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%ld h %02ld min", whole / 3600, whole % 3600 / 60);
  }
  return text;
}

/// Progress over a number of steps: one line that overwrites itself on a terminal, an occasional line
/// elsewhere.
class TrainingProgress {
 public:
  /// The clock.
  using Clock = std::chrono::steady_clock;
  /// Receives the text.
  using Write = std::function<void(std::string_view)>;

  /// Without `write`, writes nothing.
  TrainingProgress(int steps, bool terminal, Write write)
      : steps_(steps), terminal_(terminal), write_(std::move(write)), start_(Clock::now()), shown_(start_) {}

  /// Continues after steps with these losses, which took `seconds`.
  void resume(std::span<const float> losses, double seconds) {
    for (const float loss : losses) smooth(loss);
    start_ -= std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  /// Call it after every step. Smooths `loss` over about 50 steps.
  void step_done(float loss, Clock::time_point now = Clock::now()) {
    smooth(loss);
    if (!write_) return;
    const double since = std::chrono::duration<double>(now - shown_).count();
    const bool tenth = tenths(done_) != tenths(done_ - 1);
    if (done_ == steps_ || (terminal_ ? since >= kRedrawSeconds : tenth || since >= kLineSeconds)) show(now);
  }
  /// Sets the accuracy to show from now on.
  void validated(double accuracy) {
    accuracy_ = accuracy;
    has_accuracy_ = true;
  }

  /// Ends the line that overwrites itself, and writes a final message.
  void end(std::string_view message, Clock::time_point now = Clock::now()) {
    if (!write_) return;
    if (terminal_ && done_ > 0) {
      show(now);
      write_("\n");
    }
    if (message.empty()) return;
    std::string line = "  ";
    line += message;
    write_(line += '\n');
  }

  /// Seconds since the start, including time before a resume.
  [[nodiscard]] double seconds(Clock::time_point now = Clock::now()) const {
    return std::chrono::duration<double>(now - start_).count();
  }

 private:
  static constexpr double kRedrawSeconds = 0.1;
  static constexpr double kLineSeconds = 30;
  static constexpr int kBar = 16;

  void smooth(float loss) {
    smoothed_ = done_ == 0 ? loss : smoothed_ + (loss - smoothed_) * 0.02f;
    ++done_;
  }
  [[nodiscard]] int tenths(int done) const { return static_cast<int>(done * 10LL / steps_); }

  void show(Clock::time_point now) {
    char text[64];
    std::string line = terminal_ ? "\r  " : "  ";
    if (terminal_) {
      const auto filled = static_cast<std::size_t>(static_cast<long long>(done_) * kBar / steps_);
      line += '[' + std::string(filled, '#') + std::string(kBar - filled, '.') + "] ";
      std::snprintf(text, sizeof text, "%lld %%", done_ * 100LL / steps_);
    } else {
      std::snprintf(text, sizeof text, "step %d of %d", done_, steps_);
    }
    line += text;
    std::snprintf(text, sizeof text, "  loss %.4f", static_cast<double>(smoothed_));
    line += text;
    if (has_accuracy_) {
      std::snprintf(text, sizeof text, "  accuracy %.1f %%", accuracy_ * 100);
      line += text;
    }
    if (done_ < steps_) {
      line += "  ";
      line += duration_text(seconds(now) / done_ * (steps_ - done_));
      line += " left";
    }
    if (terminal_) {
      const std::size_t length = line.size();
      line.append(length_ > length ? length_ - length : 0, ' ');  // over a longer line
      length_ = length;
    } else {
      line += '\n';
    }
    write_(line);
    shown_ = now;
  }

  const int steps_;
  const bool terminal_;
  const Write write_;
  Clock::time_point start_;
  Clock::time_point shown_;
  std::size_t length_ = 0;
  int done_ = 0;
  float smoothed_ = 0;
  double accuracy_ = 0;
  bool has_accuracy_ = false;
};

}  // namespace ATTUNE_NAMESPACE::host
