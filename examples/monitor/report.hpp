// What a person sees of the monitor: how often it was right in each stretch of its life, beside what the
// factory's parameters would have said.
#pragma once

#include <cstdint>

#include "../terminal.hpp"
#include "machine.hpp"

namespace monitor {

inline constexpr int kWindows = 1600, kWindowsOfRow = 80;
inline constexpr int kRows = kWindows / kWindowsOfRow;

/// What became of windows.
struct Tally {
  std::uint32_t windows, right, right_in_factory, trips;
  std::uint16_t right_of_row[kRows], right_in_factory_of_row[kRows];
  std::uint16_t taken_for[kConditions][kConditions];
  std::uint32_t watched, false_alarms, rubs,
      rubs_noticed;  // windows with a threshold, in which the shaft rubs

  void add(int window, int condition, int adapted, int factory) {
    const int row = window / kWindowsOfRow;
    ++windows;
    ++taken_for[condition][adapted];
    if (adapted == condition) ++right, ++right_of_row[row];
    if (factory == condition) ++right_in_factory, ++right_in_factory_of_row[row];
  }
  void add_watched(bool rubs_now, bool noticed) {
    ++(rubs_now ? rubs : watched);
    if (noticed) ++(rubs_now ? rubs_noticed : false_alarms);
  }
  [[nodiscard]] float accuracy(std::uint32_t count) const {
    return static_cast<float>(count) / static_cast<float>(windows);
  }
};

/// Protection of the machine, which does not wait for a classifier: a relay trips when the mean square of the
/// last samples is too high, once a window.
struct Protection {
  float mean_square;
  bool tripped;

  bool trips_on(const float* sample) {
    const float square = sample[0] * sample[0] + sample[1] * sample[1] + sample[2] * sample[2];
    mean_square += (square - mean_square) * 0.125f;
    const bool trips = !tripped && mean_square > 1.4f;
    tripped = tripped || trips;
    return trips;
  }
};

inline void print_title(int windows) {
  port::print("monitor on ", port::name(), ": ", windows, " windows of ", kSamples, " samples of ", kAxes,
              " axes at ", kHertz, " Hz; healthy, imbalance, bearing or looseness?\n");
  port::print("  windows recognized, * adapting, o with the parameters of the factory\n");
  port::print("  window  speed  sensor turned   0 %                  50 %                100 %\n");
}

/// The rows that are complete before `window`, but for those that have been printed.
inline void print_rows(const Tally& tally, int window, std::uint32_t& printed) {
  constexpr int kColumns = 40;
  for (; static_cast<int>(printed) < window / kWindowsOfRow; ++printed) {
    const auto row = static_cast<int>(printed);
    const Drift drift = drift_at(row * kWindowsOfRow + kWindowsOfRow / 2, kWindows);
    char line[kColumns + 2] = {};
    for (char& column : line) column = ' ';
    line[kColumns + 1] = '\0';
    line[tally.right_in_factory_of_row[row] * kColumns / kWindowsOfRow] = 'o';
    line[tally.right_of_row[row] * kColumns / kWindowsOfRow] = '*';
    const int end = (row + 1) * kWindowsOfRow;
    const auto percent = static_cast<int>(40 * drift.speed), degrees = static_cast<int>(54 * drift.tilt);
    port::print(end < 100    ? "    "
                : end < 1000 ? "   "
                             : "  ",
                end, percent < 10 ? "    +" : "   +", percent, " %",
                degrees < 10 ? "              " : "             ", degrees, "°   |",
                static_cast<const char*>(line), "| ", tally.right_of_row[row] * 100 / kWindowsOfRow, " %\n");
  }
}

inline void print(const Tally& tally) {
  port::print("taken for: 0 ", kNames[0], ", 1 ", kNames[1], ", 2 ", kNames[2], ", 3 ", kNames[3], '\n');
  terminal::print_confusion(tally.taken_for);
  port::print("recognized ", tally.right, " of ", tally.windows, " windows, ",
              port::fixed(tally.accuracy(tally.right) * 100, 1), " %; with the parameters of the factory ",
              port::fixed(tally.accuracy(tally.right_in_factory) * 100, 1), " %\n");
  if (tally.watched > 0) {
    const auto percent = [](std::uint32_t part, std::uint32_t all) {
      return port::fixed(100 * static_cast<float>(part) / static_cast<float>(all), 1);
    };
    port::print("false alarms in ", tally.false_alarms, " of ", tally.watched, " usual windows, ",
                percent(tally.false_alarms, tally.watched), " %\n");
    if (tally.rubs > 0) {
      port::print("the shaft rubs in ", tally.rubs, " windows, noticed in ", tally.rubs_noticed, ", ",
                  percent(tally.rubs_noticed, tally.rubs), " %\n");
    }
  }
  port::print("protection tripped in ", tally.trips, " windows\n");
}

}  // namespace monitor
