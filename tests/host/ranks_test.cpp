#include <attune/host/ranks.hpp>

#include <array>

#include "check.hpp"
#include "host/thread_ranks.hpp"

using attune::host::Ranks;

TEST(Ranks, broadcast_the_first_ranks_values) {
  for (int size = 1; size <= 4; ++size) {
    const auto thrown = check::on_ranks(size, [](Ranks& ranks) {
      std::array<int, 3> values{ranks.rank(), 5, 10 * ranks.rank()};
      attune::host::hand_out(ranks, std::as_writable_bytes(std::span(values)));
      EXPECT_EQ(values, (std::array{0, 5, 0}));
    });
    for (const std::string& what : thrown) EXPECT_EQ(what, "");
  }
}

TEST(Ranks, gather_all_values_in_order) {
  for (int size = 1; size <= 4; ++size) {
    const auto thrown = check::on_ranks(size, [size](Ranks& ranks) {
      for (int round = 0; round < 3; ++round) {
        const auto all = attune::host::of_all_ranks(ranks, 100 * round + ranks.rank());
        ASSERT_EQ(all.size(), static_cast<std::size_t>(size));
        for (int rank = 0; rank < size; ++rank)
          EXPECT_EQ(all[static_cast<std::size_t>(rank)], 100 * round + rank);
      }
      EXPECT_EQ(ranks.is_last(), ranks.rank() == size - 1);
    });
    for (const std::string& what : thrown) EXPECT_EQ(what, "");
  }
}
