#include <attune/execution/published.hpp>

#include "check.hpp"

namespace {

attune::Published<int> published;  // zero before main, as on a board

}  // namespace

TEST(Published, hands_a_value_over_with_the_readers_next_look) {
  EXPECT_EQ(published.take(), 0);
  EXPECT_EQ(published.number(), 0u);
  int* const first = published.place();
  ASSERT_TRUE(first != nullptr);
  *first = 1;
  EXPECT_EQ(published.take(), 0);  // not complete
  published.publish();
  EXPECT_TRUE(published.place() == nullptr);  // the reader may come for it at any time
  EXPECT_EQ(published.number(), 0u);
  EXPECT_EQ(published.take(), 1);
  EXPECT_EQ(published.number(), 1u);
}

TEST(Published, keeps_the_value_that_the_reader_has) {
  const int& taken = published.take();
  const int before = taken;
  int* const next = published.place();
  ASSERT_TRUE(next != nullptr && next != &taken);
  *next = before + 1;
  published.publish();
  EXPECT_EQ(taken, before);
  EXPECT_EQ(published.take(), before + 1);
}

TEST(Published, publishes_no_value_twice) {
  const int before = published.take();
  *published.place() = before + 1;
  published.publish();
  published.publish();
  EXPECT_EQ(published.take(), before + 1);
  EXPECT_EQ(published.take(), before + 1);
}
