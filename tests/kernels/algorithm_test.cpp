#include <attune/kernels/algorithm.hpp>

#include <algorithm>
#include <array>
#include <functional>

#include "check.hpp"

namespace {

namespace detail = attune::detail;

static_assert(detail::smaller(2, -3) == -3 && detail::larger(2, -3) == 2);
static_assert(detail::smallest({3, 1, 2}) == 1 && detail::largest({3, 1, 2}) == 3 &&
              detail::largest({-1}) == -1);
static_assert(detail::clamp(5, 0, 3) == 3 && detail::clamp(-5, 0, 3) == 0 && detail::clamp(2, 0, 3) == 2);

constexpr int kMost = 40;
using Values = std::array<int, kMost>;

// Values below `kinds`, so that many are equal.
Values drawn(int kinds, attune::Rng& rng) {
  Values values;
  for (int& value : values) value = static_cast<int>(rng.next() % static_cast<unsigned>(kinds));
  return values;
}
constexpr bool sorts() {
  int values[] = {4, 1, 3, 1, 0};
  detail::sort(values, 5, [](int a, int b) { return a > b; });
  return values[0] == 4 && values[1] == 3 && values[2] == 1 && values[3] == 1 && values[4] == 0;
}
static_assert(sorts());

}  // namespace

TEST(Algorithm, smaller_and_larger_return_the_first_of_equals_and_beside_a_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(check::same_bits(detail::smaller(0.0f, -0.0f), 0.0f));
  EXPECT_TRUE(check::same_bits(detail::larger(-0.0f, 0.0f), -0.0f));
  EXPECT_TRUE(check::same_bits(detail::smaller(1.0f, nan), 1.0f));
  EXPECT_TRUE(check::same_bits(detail::larger(1.0f, nan), 1.0f));
}

TEST(Algorithm, sort_orders_any_number_of_values) {
  attune::Rng rng(7);
  for (int count = 0; count <= kMost; ++count) {
    for (const int kinds : {1, 3, 1000}) {
      Values values = drawn(kinds, rng), expected = values;
      std::sort(expected.begin(), expected.begin() + count);
      detail::sort(values.data(), count, std::less<int>());
      EXPECT_EQ(values, expected) << count << " values of " << kinds << " kinds";
    }
  }
}

TEST(Algorithm, kth_largest_is_where_sorting_puts_it) {
  attune::Rng rng(8);
  for (const int kinds : {1, 3, 1000}) {
    const Values values = drawn(kinds, rng);
    Values sorted = values, heap{};
    std::sort(sorted.begin(), sorted.end(), std::greater<int>());
    for (int k = 1; k < kMost; ++k) {
      heap[static_cast<std::size_t>(k)] = -1;
      EXPECT_EQ(detail::kth_largest(k, kMost, values.data(), heap.data()),
                sorted[static_cast<std::size_t>(k - 1)]);
      EXPECT_EQ(heap[static_cast<std::size_t>(k)], -1) << "beyond the heap";
    }
  }
}

TEST(Algorithm, copy_n_copies_where_places_overlap) {
  int values[] = {1, 2, 3, 4};
  detail::copy_n(values, 3, values + 1);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 1);
  EXPECT_EQ(values[2], 2);
  EXPECT_EQ(values[3], 3);
}
