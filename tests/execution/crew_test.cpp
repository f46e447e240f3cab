#include <attune/execution/crew.hpp>

#include "check.hpp"

namespace {

static_assert(attune::Crew<attune::OneCore>);

// A core whose partner publishes while it waits.
struct Partner {
  static constexpr std::size_t kFlagBytes = 4;
  static inline int looks = 0, calls = 0;
  static inline attune::WordFlag<Partner>* flag = nullptr;
  static void relax() {
    if (++looks == 3) flag->publish(5);
  }
  static void wake() { ++calls; }
};
attune::WordFlag<Partner> word;

}  // namespace

TEST(OneCore, calls_the_body_for_every_index_in_order) {
  attune::OneCore crew;
  int number = 0;
  attune::OneCore::Flag flag;
  flag.reset();
  crew.for_each(4, [&](int member, int index) {
    EXPECT_EQ(member, 0);
    EXPECT_EQ(flag.wait_for(static_cast<std::uint32_t>(index)), static_cast<std::uint32_t>(index));
    number = 10 * number + index;
    flag.publish(static_cast<std::uint32_t>(index + 1));
  });
  EXPECT_EQ(number, 123);
  crew.for_each(0, [&](int, int) { number = 0; });
  EXPECT_EQ(number, 123);
}

TEST(WordFlag, waits_until_the_number_and_wakes_when_it_is_published) {
  Partner::flag = &word;
  EXPECT_EQ(word.wait_for(0), 0u);
  EXPECT_EQ(Partner::looks, 0);
  EXPECT_EQ(word.wait_for(4), 5u);
  EXPECT_EQ(Partner::looks, 3);
  EXPECT_EQ(Partner::calls, 1);
}

TEST(WordFlag, numbers_wrap_like_an_unsigned_counter) {
  word.publish(0xFFFFFFFFu);
  EXPECT_EQ(word.wait_for(0xFFFFFFF0u), 0xFFFFFFFFu);
  word.publish(2);
  EXPECT_EQ(word.wait_for(0xFFFFFFFFu), 2u);
  word.reset();
  EXPECT_EQ(word.wait_for(0), 0u);
}
