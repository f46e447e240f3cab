// The options and the last line of a program that draws runs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// --runs N --seed N --first N: what is not given stays.
inline void read_options(int count, char** arguments, std::uint64_t& runs, std::uint64_t& seed,
                         std::uint64_t& first) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::uint64_t value = std::strtoull(arguments[i + 1], nullptr, 10);
    if (std::strcmp(arguments[i], "--runs") == 0) runs = value;
    if (std::strcmp(arguments[i], "--seed") == 0) seed = value;
    if (std::strcmp(arguments[i], "--first") == 0) first = value;
  }
}

/// Prints the counts; the program's exit code.
inline int close(int passed, int failed) {
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
template <int count>
int close(const bool (&good)[count]) {
  int passed = 0;
  for (const bool each : good) passed += each ? 1 : 0;
  return close(passed, count - passed);
}
