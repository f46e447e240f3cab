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

TEST(Turns, neighbours_have_different_buffers) {
  attune::detail::Turns<float, 6, 3> turns;
  using Small = attune::Tensor<float, 1, 4>;
  using Large = attune::Tensor<float, 2, 3>;
  EXPECT_NE(turns.at<Small>(0).data, turns.at<Large>(1).data);
  EXPECT_EQ(turns.at<Small>(0).data, turns.at<Large>(2).data);
  static_assert(sizeof turns == 12 * sizeof(float));
  static_assert(sizeof(attune::detail::Turns<float, 6, 1>) == 6 * sizeof(float));
  static_assert(std::is_empty_v<attune::detail::Turns<float, 6, 0>>);
}
