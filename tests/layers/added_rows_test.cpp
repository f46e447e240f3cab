// The base of layers that add a row to every token: they copy tokens that count, and work in place.
#include <attune/layers/added_rows.hpp>

#include <type_traits>

#include "check.hpp"

namespace {

struct Rows : attune::detail::AddedRows<Rows, 3, 2, float> {
  using attune::detail::AddedRows<Rows, 3, 2, float>::copy;
};

}  // namespace

TEST(AddedRows, copies_the_tokens_that_count) {
  const Rows::Input x{{1, 2, 3, 4, 5, 6}};
  Rows::Output y{{-1, -1, -1, -1, -1, -1}};
  Rows::copy(2, x.data(), y.data());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y.values[i], x.values[i]);
  EXPECT_EQ(y.values[4], -1.0f);
  EXPECT_EQ(y.values[5], -1.0f);
  Rows::copy(3, y.data(), y.data());
  EXPECT_EQ(y.values[3], 4.0f);
}

TEST(AddedRows, keeps_nothing_for_backward) {
  EXPECT_TRUE(std::is_empty_v<Rows::Tape>);
  EXPECT_FALSE(Rows::kReadsInput<attune::NoParameters>);
}
