// Comparing speeds on a machine that is never quite idle: contenders take turns, and what counts is the
// median ratio.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace bench {

/// The compiler may neither drop nor move memory accesses across this.
inline void keep() { asm volatile("" ::: "memory"); }

/// Times pieces of work in turn, A B C A B C …, so that a change of clock frequency or a busy neighbor meets
/// all of them.
class Race {
 public:
  /// `work` is one call of the contender. Returns its number, for ratio().
  template <class Work>
  int add(Work work) {
    contenders_.push_back({[work](long calls) {
      for (long i = 0; i < calls; ++i) {
        work();
        keep();
      }
    }});
    return static_cast<int>(contenders_.size()) - 1;
  }

  void run() {
    double round = 0;
    for (Contender& contender : contenders_) round += calibrate(contender);
    const int rounds = std::clamp(static_cast<int>(kBudget / round), kFewestRounds, kMaxRounds);
    for (int i = 0; i < rounds; ++i) {
      for (Contender& contender : contenders_) {
        const double processor = processor_seconds();
        contender.turns.push_back(turn(contender) / static_cast<double>(contender.calls));
        contender.processor.push_back((processor_seconds() - processor) /
                                      static_cast<double>(contender.calls));
      }
    }
  }

  /// How many times longer one call of `slower` takes than one of `faster`: the median over the rounds, each
  /// of which compares turns that were neighbors in time.
  [[nodiscard]] double ratio(int slower, int faster) const {
    return median_ratio(contenders_[static_cast<std::size_t>(slower)].turns,
                        contenders_[static_cast<std::size_t>(faster)].turns);
  }
  /// The same in processor time, of all threads together.
  [[nodiscard]] double processor_ratio(int slower, int faster) const {
    return median_ratio(contenders_[static_cast<std::size_t>(slower)].processor,
                        contenders_[static_cast<std::size_t>(faster)].processor);
  }
  /// What one call takes, in the round where others took least of the processor.
  [[nodiscard]] double seconds(int contender) const {
    const std::vector<double>& turns = contenders_[static_cast<std::size_t>(contender)].turns;
    return *std::min_element(turns.begin(), turns.end());
  }

 private:
  static constexpr double kTurn = 1e-3;   // seconds of work in a turn, at least
  static constexpr double kBudget = 0.5;  // seconds for all turns, about
  static constexpr int kFewestRounds = 11;
  static constexpr int kMaxRounds = 61;

  struct Contender {
    std::function<void(long)> run;
    long calls = 1;
    std::vector<double> turns = {}, processor = {};  // seconds of a call
  };

  static double median_ratio(std::vector<double> ratios, const std::vector<double>& divisors) {
    for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= divisors[i];
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::nth_element(ratios.begin(), middle, ratios.end());
    return *middle;
  }
  // Of all threads of the process.
  static double processor_seconds() {
    std::timespec time{};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  // Sets how many calls make a turn; returns how long that turn takes.
  static double calibrate(Contender& contender) {
    double seconds = turn(contender);
    while (seconds < kTurn) {
      const double factor = std::min(10.0, 1.2 * kTurn / std::max(seconds, 1e-9));
      contender.calls = static_cast<long>(static_cast<double>(contender.calls) * factor) + 1;
      seconds = turn(contender);
    }
    return seconds;
  }

  // A contender that leaves the upper halves of vector registers in use slows down SSE code after it (every
  // instruction then merges into them), so they are cleared between turns.
  static void clear_upper_halves() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper" ::: "memory");
#endif
  }

  static double turn(const Contender& contender) {
    clear_upper_halves();
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    contender.run(contender.calls);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::vector<Contender> contenders_;
};

/// One line for report.py.
inline void figure(const std::string& key, double value) {
  std::printf("%s %.8g\n", key.c_str(), value);
  std::fflush(stdout);
}
inline void absent(const char* competitor) { std::printf("absent %s\n", competitor); }

}  // namespace bench
