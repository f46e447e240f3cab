// What the examples show a person: progress, a loss curve, attention weights, the memory report. Text only,
// over port.hpp, so it looks the same on a PC and on a board.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/core/tensor.hpp>
#include <console.hpp>
#include <port.hpp>

namespace terminal {

/// Progress of `total` steps: a bar that overwrites its line on a terminal, ten plain lines elsewhere.
class Progress {
 public:
  explicit Progress(int total) : total_(total) {}

  /// Call after every step with the smoothed loss.
  void show(int done, float loss) {
    const int percent = static_cast<int>(static_cast<std::int64_t>(done) * 100 / total_);
    if (percent == shown_) return;
    if (port::is_terminal()) {
      constexpr int kWidth = 30;
      char bar[kWidth + 1] = {};
      for (int i = 0; i < kWidth; ++i) bar[i] = i < percent * kWidth / 100 ? '#' : '.';
      port::print("\r  [", static_cast<const char*>(bar), "] ", percent, " %  loss ", port::fixed(loss, 4),
                  "   ");
      if (done == total_) port::print('\n');
    } else if (percent / 10 != shown_ / 10) {
      port::print("  step ", done, " of ", total_, "  loss ", port::fixed(loss, 4), '\n');
    }
    shown_ = percent;
  }

 private:
  int total_;
  int shown_ = 0;
};

/// The mean loss of each of kPoints equal stretches of training.
template <int kPoints>
struct LossCurve {
  float mean[kPoints];
  int count[kPoints];

  void add(int step, int steps, float loss) {
    const int point = static_cast<int>(static_cast<std::int64_t>(step) * kPoints / steps);
    mean[point] += (loss - mean[point]) / static_cast<float>(++count[point]);
  }

  /// Ten rows, each kPercent of the one above: losses span decades, so the axis is logarithmic.
  template <int kPercent = 50>
  void print() const {
    constexpr int kRows = 10;
    constexpr float kRatio = kPercent / 100.0f;
    float top = mean[0];
    for (const float value : mean) top = value > top ? value : top;
    port::print("loss, each row ", kPercent, " % of the one above; ", kPoints,
                " stretches of training from left to right\n");
    for (int row = 0; row < kRows; ++row, top *= kRatio) {
      char line[kPoints + 1] = {};
      for (int point = 0; point < kPoints; ++point) {
        const bool inside = mean[point] > kRatio * top && (row == 0 || mean[point] <= top);
        const bool below = row == kRows - 1 && mean[point] <= kRatio * top;
        line[point] = count[point] == 0 ? ' ' : inside ? '*' : below ? '_' : ' ';
      }
      port::print("  ", port::fixed(top, 4), " |", static_cast<const char*>(line), '\n');
    }
  }
};

/// Attention weights [queries, keys], one row a query, darker is more.
template <int kQueries, int kKeys, int kRowStride>
void print_attention(attune::MatrixView<const float, kQueries, kKeys, kRowStride> weights) {
  constexpr char kShades[] = " .:-=+*#%@";
  port::print("           key 0 … ", kKeys - 1, "   (' ' is 0, '@' is 1)\n");
  for (int query = 0; query < kQueries; ++query) {
    char line[2 * kKeys + 1] = {};
    for (int key = 0; key < kKeys; ++key) {
      const auto shade = static_cast<int>(weights(query, key) * 9.0f + 0.5f);
      line[2 * key] = line[2 * key + 1] = kShades[shade < 0 ? 0 : shade > 9 ? 9 : shade];
    }
    port::print("  query ", query, query < 10 ? "  |" : " |", static_cast<const char*>(line), "|\n");
  }
}

/// How often what is of one class (rows) was taken for another (columns); '.' is never. Counts up to 999.
template <int kClasses>
void print_confusion(const std::uint16_t (&counts)[kClasses][kClasses]) {
  static_assert(kClasses <= 10);
  constexpr int kColumn = 4;
  char line[kColumn * kClasses + 1] = {};
  const auto set = [&line](int column, int number) {
    for (int i = 0; i < kColumn; ++i) line[kColumn * column + i] = ' ';
    int at = kColumn * column + kColumn - 1;
    do {
      line[at--] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
  };
  for (int column = 0; column < kClasses; ++column) set(column, column);
  port::print("  taken for", static_cast<const char*>(line), '\n');
  for (int row = 0; row < kClasses; ++row) {
    for (int column = 0; column < kClasses; ++column) {
      set(column, counts[row][column]);
      if (counts[row][column] == 0) line[kColumn * column + kColumn - 1] = '.';
    }
    port::print("       is ", row, static_cast<const char*>(line), '\n');
  }
}

inline void print_memory(const char* what, const attune::MemoryReport& memory) {
  port::print("RAM of ", what, '\n');
  port::print("  parameters ", memory.parameters, ", gradients ", memory.gradients, ", moments ",
              memory.moments, ", tape ", memory.tape, ", scratch ", memory.scratch);
  port::print(", inputs ", memory.inputs, ", state ", memory.state);
  if (memory.cache > 0) port::print(", cache ", memory.cache);
  port::print("; total ", memory.total(), " bytes\n");
}

/// A key of the result line: what port::end_counting() said. '-' is for who runs the program to fill in, in
/// the order of counting.
inline void print_count(const char* key, std::uint64_t count) {
  port::print(key, '=');
  if (count == 0) {
    port::print('-');
  } else {
    port::print(count);
  }
}
/// The same of one training step or one inference.
inline void print_instructions(const char* of, std::uint64_t count) {
  port::print(' ', of);
  print_count("_instructions", count);
}

}  // namespace terminal
