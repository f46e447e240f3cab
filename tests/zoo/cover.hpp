// Rows of values, one for each axis, so that any two values of two axes that may stand together do so in some
// row (a covering array of strength two). Greedy: a row begins with the first pair that is missing, and each
// further value is the one that adds most pairs. A seed decides between equals.
#pragma once

#include <array>
#include <cstdint>

namespace zoo {

template <std::size_t axes>
struct Row {
  std::array<int, axes> value;
};
template <std::size_t axes, std::size_t most>
struct Rows {
  std::array<Row<axes>, most> row{};
  std::size_t count = 0;
  bool complete = true;  // whether every pair is in a row
};

/// `sizes`: the number of values of each axis. `conflict(a, i, b, j)`: why value i of axis a never meets
/// value j of axis b, for a < b; nullptr if it does.
template <std::size_t most, std::size_t axes, class Conflict>
constexpr Rows<axes, most> cover(const std::array<int, axes>& sizes, const Conflict& conflict,
                                 std::uint32_t seed) {
  constexpr int kValues = 40;  // of all axes
  std::array<int, axes + 1> begin{};
  for (std::size_t a = 0; a < axes; ++a) begin[a + 1] = begin[a] + sizes[a];
  if (begin[axes] > kValues) return {.complete = false};
  // Pairs of values that may meet, and those that no row has yet.
  std::array<std::array<bool, kValues>, kValues> meet{}, missing{};
  for (std::size_t a = 0; a < axes; ++a) {
    for (std::size_t b = a + 1; b < axes; ++b) {
      for (int i = 0; i < sizes[a]; ++i) {
        for (int j = 0; j < sizes[b]; ++j) {
          const auto x = static_cast<std::size_t>(begin[a] + i), y = static_cast<std::size_t>(begin[b] + j);
          meet[x][y] = meet[y][x] = missing[x][y] = missing[y][x] = conflict(a, i, b, j) == nullptr;
        }
      }
    }
  }
  Rows<axes, most> rows;
  for (std::size_t a = 0; a < axes; ++a) {
    for (std::size_t b = a + 1; b < axes; ++b) {
      for (int pair = 0; pair < sizes[a] * sizes[b]; ++pair) {
        const int i = pair / sizes[b], j = pair % sizes[b];
        if (!missing[static_cast<std::size_t>(begin[a] + i)][static_cast<std::size_t>(begin[b] + j)])
          continue;
        Row<axes> row;
        row.value.fill(-1);
        row.value[a] = i;
        row.value[b] = j;
        for (std::size_t axis = 0; axis < axes; ++axis) {
          int best = -1, most_added = -1;
          seed = seed * 1664525u + 1013904223u;
          for (int k = 0; k < sizes[axis] && row.value[axis] < 0; ++k) {
            const int value = (k + static_cast<int>(seed >> 16)) % sizes[axis];
            int added = 0;
            for (std::size_t other = 0; other < axes; ++other) {
              if (row.value[other] < 0) continue;
              const auto x = static_cast<std::size_t>(begin[axis] + value),
                         y = static_cast<std::size_t>(begin[other] + row.value[other]);
              added += meet[x][y] ? missing[x][y] : -1000;
            }
            if (added > most_added) best = value, most_added = added;
          }
          if (row.value[axis] < 0) row.value[axis] = best;
        }
        for (std::size_t p = 0; p < axes; ++p) {
          rows.complete = rows.complete && row.value[p] >= 0 && rows.count < most;
          if (!rows.complete) return rows;
          for (std::size_t q = 0; q < axes; ++q) {
            missing[static_cast<std::size_t>(begin[p] + row.value[p])]
                   [static_cast<std::size_t>(begin[q] + row.value[q])] = false;
          }
        }
        rows.row[rows.count++] = row;
      }
    }
  }
  return rows;
}

}  // namespace zoo
