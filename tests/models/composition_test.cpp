#include <attune/models/composition.hpp>

#include "check.hpp"

namespace {

using attune::detail::Members;

struct None {};
struct AlsoNone {};

// Nothing is spent on what is empty, however often and of whatever type.
static_assert(sizeof(Members<float, None, double>) == 2 * sizeof(double));
static_assert(sizeof(Members<None, float, None, None, AlsoNone, float, None>) == 2 * sizeof(float));
static_assert(std::is_empty_v<Members<None, None>>);
static_assert(std::is_trivially_copyable_v<Members<None, float>>);

}  // namespace

TEST(Members, are_found_by_their_number) {
  Members<float, None, int, float> members{};
  attune::detail::member<0>(members) = 1.5f;
  attune::detail::member<2>(members) = 7;
  attune::detail::member<3>(members) = 2.5f;
  const auto& constant = members;
  EXPECT_EQ(attune::detail::member<0>(constant), 1.5f);
  EXPECT_EQ(attune::detail::member<2>(constant), 7);
  EXPECT_EQ(attune::detail::member<3>(constant), 2.5f);
  static_assert(std::is_same_v<decltype(attune::detail::member<1>(members)), None>);
}
