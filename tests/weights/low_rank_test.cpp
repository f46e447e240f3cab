#include <attune/weights/low_rank.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::LowRank, attune::Tensor, attune::Untrained;

constexpr int kTokens = 7, kIn = 6, kOut = 5, kRank = 3;
using Factors = attune::LowRankFactors<LowRank{.rank = kRank, .alpha = 1.5}, double, kIn, kOut>;
using Base = attune::Reference<double, kIn, kOut>;
using Weight = attune::LowRankWeight<Base, Factors, kTokens>;
using Gradient = attune::LowRankGradient<Factors, kTokens>;

struct Operands {
  Tensor<double, kIn, kOut> w;
  Factors factors, gradients{};
  Tensor<double, kTokens, kRank> room;
  Tensor<double, kTokens, kIn> x;
  Tensor<double, kTokens, kOut> dy;

  Operands() {
    attune::Rng rng(4);
    check::fill(factors.a, rng);
    check::fill(factors.b, rng);
    check::fill(w, rng);
    check::fill(x, rng);
    check::fill(dy, rng);
  }
  Weight weight() { return {{w.data()}, &factors, room.data()}; }
  Gradient gradient() { return {&factors, &gradients, room.data()}; }
};

}  // namespace

TEST(LowRankWeight, multiplies_like_the_merged_weight) {
  static Operands o;
  static Tensor<double, kIn, kOut> sum;
  for (int i = 0; i < kIn; ++i) {
    for (int j = 0; j < kOut; ++j) {
      double product = 0;
      for (int k = 0; k < kRank; ++k) product += o.factors.a(i, k) * o.factors.b(k, j);
      sum(i, j) = o.w(i, j) + 0.5 * product;
      EXPECT_NEAR(o.weight()(i, j), sum(i, j), 1e-15);
    }
  }
  static Tensor<double, kTokens, kOut> y, expected;
  Tensor<double, 1, kOut> bias;
  attune::Rng rng(5);
  check::fill(bias, rng);
  const attune::kernels::AddBias<double> add_bias{bias.data()};
  attune::multiply(view(o.x), o.weight(), view(y), add_bias);
  attune::multiply(view(o.x), sum, view(expected), add_bias);
  EXPECT_LE(check::max_difference(y, expected), 1e-14);
  attune::multiply(view(o.x), o.weight(), view(y), attune::kernels::Accumulate{});
  attune::multiply(view(o.x), sum, view(expected), attune::kernels::Accumulate{});
  EXPECT_LE(check::max_difference(y, expected), 1e-14);

  static Tensor<double, kTokens, kIn> dx, expected_dx;
  attune::multiply_transposed(view(o.dy), o.weight(), view(dx));
  attune::multiply_transposed(view(o.dy), sum, view(expected_dx));
  EXPECT_LE(check::max_difference(dx, expected_dx), 1e-14);
  static Tensor<double, kTokens, 2> some;
  attune::multiply_transposed_rows(view(o.dy), o.weight(), 3, view(some));
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < some.cols; ++j) EXPECT_EQ(some(i, j), dx(i, 3 + j));
  }
}

TEST(LowRankWeight, gives_a_row_the_same_bits_whatever_rows_it_comes_with) {
  static Operands o;
  static Tensor<double, kTokens, kOut> whole, rows;
  static Tensor<double, kTokens, kIn> whole_dx, rows_dx;
  attune::multiply(view(o.x), o.weight(), view(whole));
  attune::multiply_transposed(view(o.dy), o.weight(), view(whole_dx));
  const auto part = [&]<int count>(int first) {
    attune::multiply(view(o.x).rows_at<count>(first), o.weight(), view(rows).rows_at<count>(first));
    attune::multiply_transposed(view(o.dy).rows_at<count>(first), o.weight(),
                                view(rows_dx).rows_at<count>(first));
  };
  part.operator()<1>(0);
  part.operator()<4>(1);
  part.operator()<2>(5);
  EXPECT_TRUE(check::same_bits(whole, rows));
  EXPECT_TRUE(check::same_bits(whole_dx, rows_dx));
}

TEST(LowRankGradient, has_the_same_bits_in_slices_of_rows) {
  static Operands whole, slices;
  const auto x_transposed = view(whole.x).transpose();
  attune::add_product(x_transposed, view(whole.dy), view(whole.gradient()));
  const auto part = [&]<int count>(int first) {
    attune::add_product(x_transposed.rows_at<count>(first), view(whole.dy),
                        view(slices.gradient()).rows_at<count>(first));
  };
  part.operator()<2>(0);
  part.operator()<3>(2);
  part.operator()<1>(5);
  EXPECT_TRUE(check::same_bits(whole.gradients, slices.gradients));

  // And in whole rows and one more.
  static Operands nested;
  const auto last = view(nested.gradient()).rows_at<4>(2);
  attune::add_product(x_transposed.rows_at<2>(0), view(whole.dy), view(nested.gradient()).rows_at<2>(0));
  attune::add_product(x_transposed.rows_at<2>(2), view(whole.dy), last.rows_at<2>(0));
  attune::add_product(x_transposed.rows_at<2>(4), view(whole.dy), last.rows_at<2>(2));
  EXPECT_TRUE(check::same_bits(whole.gradients, nested.gradients));
}

TEST(LowRankGradient, is_the_derivative_of_the_product) {
  static Operands o;
  static Tensor<double, kTokens, kOut> y;
  attune::add_product(view(o.x).transpose(), view(o.dy), view(o.gradient()));
  const auto loss = [] {
    attune::multiply(view(o.x), o.weight(), view(y));
    return check::dot(y, o.dy);
  };
  EXPECT_GT(check::expect_gradient({"A"}, loss, o.factors.a, o.gradients.a), 0.1);
  EXPECT_GT(check::expect_gradient({"B"}, loss, o.factors.b, o.gradients.b), 0.1);
}

TEST(LowRankGradient, of_tokens_without_a_gradient_is_zero_whatever_they_hold) {
  static Operands clean, dirty;
  for (int j = 0; j < kOut; ++j) clean.dy(2, j) = dirty.dy(2, j) = 0;
  for (int j = 0; j < kIn; ++j) dirty.x(2, j) = check::kNan<double>;
  dirty.x(2, 1) = check::kInfinity<double>;
  attune::add_product(view(clean.x).transpose(), view(clean.dy), view(clean.gradient()),
                      attune::kernels::ZeroSkipping(view(clean.x)));
  attune::add_product(view(dirty.x).transpose(), view(dirty.dy), view(dirty.gradient()),
                      attune::kernels::ZeroSkipping(view(dirty.x)));
  EXPECT_TRUE(check::same_bits(clean.gradients, dirty.gradients));
}

TEST(LowRankFactors, belong_to_weights_and_not_to_tables) {
  static_assert(std::is_same_v<attune::detail::TableForm<Weight>::type, Base>);
  static_assert(std::is_same_v<attune::detail::TableForm<Factors>::type, Untrained<double, kIn, kOut>>);
  static_assert(std::is_same_v<attune::detail::TableForm<Gradient>::type, Untrained<double, kIn, kOut>>);
  static_assert(sizeof(Factors) == sizeof(double) * kRank * (kIn + kOut));
}
