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
