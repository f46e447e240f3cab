#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include <attune/kernels/portable/prefetch.hpp>

namespace {

using namespace attune::kernels;

// Lines that hold one of the scalars of `block`, and those that its parts visit.
template <int kParts, int kRows, int kCols, int kStride, class Scalar>
void expect_all_lines(detail::Lines<kRows, kCols, kStride, Scalar> block) {
  const auto line = [](const Scalar* address) {
    return reinterpret_cast<std::uintptr_t>(address) / detail::kLineBytes;
  };
  std::set<std::uintptr_t> held, visited;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCols; ++j) held.insert(line(block.first + i * kStride + j));
  }
  for (int part = 0; part < kParts; ++part) {
    block.template visit<kParts>(part, [&](const Scalar* address) { visited.insert(line(address)); });
  }
  EXPECT_EQ(visited, held) << kRows << " x " << kCols << " in " << kParts;
}

alignas(64) float floats[16 * 128 + 64];
alignas(64) double doubles[16 * 128 + 64];

TEST(Lines, are_all_visited_by_the_parts_for_any_row_start) {
  for (int offset = 0; offset < 32; ++offset) {
    expect_all_lines<1>(detail::Lines<12, 32, 128, const float>{floats + offset});
    expect_all_lines<16>(detail::Lines<12, 33, 128, const float>{floats + offset});
    expect_all_lines<5>(detail::Lines<12, 128, 128, const float>{floats + offset});
    expect_all_lines<4>(detail::Lines<12, 1, 100, const float>{floats + offset});
    expect_all_lines<7>(detail::Lines<16, 24, 64, const double>{doubles + offset});
  }
}

}  // namespace
