#include <attune/training/huber.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::Huber;
using attune::HuberOptions;
using attune::Reduction;
using attune::Tensor;
using Sum = Huber<HuberOptions{.reduction = Reduction::kSum}>;

constexpr Tensor<float, 2, 2> kOutput{{0.5f, 3, -4, 1}};
constexpr Tensor<float, 2, 2> kTarget{{0, 0, 0, 1}};

}  // namespace

TEST(Huber, is_squared_near_and_linear_far) {
  Tensor<float, 2, 2> dy;
  EXPECT_EQ(Sum::forward(kOutput, kTarget, dy), 0.125f + 2.5f + 3.5f);
  const Tensor<float, 2, 2> expected{{0.5f, 1, -1, 0}};
  EXPECT_TRUE(check::same_bits(dy, expected));
}

TEST(Huber, mean_divides_by_the_number_of_entries) {
  Tensor<float, 2, 2> dy;
  EXPECT_EQ(Huber<>::forward(kOutput, kTarget, dy, 2.0f), 6.125f / 2);
  const Tensor<float, 2, 2> expected{{0.25f, 0.5f, -0.5f, 0}};
  EXPECT_TRUE(check::same_bits(dy, expected));
}

TEST(Huber, delta_is_where_it_becomes_linear) {
  using Wide = Huber<HuberOptions{.reduction = Reduction::kSum, .delta = 3.5}>;
  Tensor<float, 2, 2> dy;
  EXPECT_EQ(Wide::forward(kOutput, kTarget, dy), 0.125f + 4.5f + 3.5f * (4 - 1.75f));
  const Tensor<float, 2, 2> expected{{0.5f, 3, -3.5f, 0}};
  EXPECT_TRUE(check::same_bits(dy, expected));
}

TEST(Huber, works_in_place_and_keeps_nan) {
  Tensor<float, 2, 2> in_place = kOutput, dy;
  EXPECT_EQ(Sum::forward(in_place, kTarget, in_place), Sum::forward(kOutput, kTarget, dy));
  EXPECT_TRUE(check::same_bits(in_place, dy));
  in_place(0, 1) = check::kNan<float>;
  EXPECT_TRUE(check::is_nan(Sum::forward(in_place, kTarget, in_place)));
}

TEST(Huber, gradient_is_the_derivative) {
  attune::Rng rng(1);
  Tensor<double, 3, 5> y, target, dy, unused;
  check::fill(y, rng, -2, 2);
  check::fill(target, rng, -2, 2);
  const auto expect = [&]<class Loss>(Loss) {
    (void)Loss::forward(y, target, dy, 0.25);
    const auto loss = [&] { return Loss::forward(y, target, unused, 0.25); };
    EXPECT_GT(check::expect_gradient({"y"}, loss, y, dy), 0.01);
  };
  expect(Huber<>{});
  expect(Huber<HuberOptions{.reduction = Reduction::kSum, .delta = 0.3}>{});
}
