#include <attune/kernels/ops/squares.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

constexpr int kMax = 71;

// As the header says it, one by one.
template <class Scalar>
Scalar plain_sum(int size, const Scalar* x) {
  Scalar lanes[16] = {};
  const int whole = size / 16 * 16;
  for (int i = 0; i < whole; ++i) lanes[i % 16] += x[i] * x[i];
  for (int half = 8; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  for (int i = whole; i < size; ++i) lanes[0] += x[i] * x[i];
  return lanes[0];
}

template <class Scalar>
void expect_same_bits() {
  attune::Rng rng(1);
  attune::Tensor<Scalar, 1, kMax> x;
  for (int size = 0; size <= kMax; ++size) {
    check::fill(x, rng, -100, 100);
    const Scalar sum = kernels::sum_of_squares(size, x.data());
    EXPECT_TRUE(check::same_bits(sum, plain_sum(size, x.data()))) << size;
  }
}

// Of vectors in two or three portions.
template <bool kRestLast, class Scalar>
Scalar in_portions(int size, const Scalar* x, int first_end, int second_end, Scalar scale) {
  kernels::PartialSquares<Scalar> squares;
  const int ends[] = {first_end, second_end, size};
  for (int first = 0; const int end : ends) {
    if (end > first) squares.template add<kRestLast>(x, size, first, end - first, scale);
    first = end;
  }
  return squares.total;
}

template <class Scalar>
void expect_same_bits_in_portions() {
  attune::Rng rng(2);
  attune::Tensor<Scalar, 1, kMax> x;
  check::fill(x, rng, -100, 100);
  const Scalar scale = Scalar(0.0137);
  for (const int size : {1, 15, 16, 17, 48, 71}) {
    const Scalar plain = kernels::sum_of_squares(size, static_cast<const Scalar*>(x.data()));
    const Scalar scaled = kernels::sum<Scalar>(size, [&]<class P>(int i) {
      const P each = kernels::multiply(kernels::load<P>(x.data() + i), kernels::broadcast<P>(scale));
      return kernels::multiply(each, each);
    });
    for (int first_end = 0; first_end <= size; ++first_end) {
      for (int second_end = first_end; second_end <= size; ++second_end) {
        EXPECT_TRUE(
            check::same_bits(in_portions<true, Scalar>(size, x.data(), first_end, second_end, scale), plain))
            << size << ' ' << first_end << ' ' << second_end;
        EXPECT_TRUE(check::same_bits(in_portions<false, Scalar>(size, x.data(), first_end, second_end, scale),
                                     scaled))
            << size << ' ' << first_end << ' ' << second_end;
      }
    }
  }
}

}  // namespace

TEST(PartialSquares, have_the_bits_of_one_pass) {
  expect_same_bits_in_portions<float>();
  expect_same_bits_in_portions<double>();
}

TEST(SumOfSquares, has_one_order_on_every_target) {
  expect_same_bits<float>();
  expect_same_bits<double>();
}

TEST(SumOfSquares, of_nothing_is_zero) {
  const float nothing = 5;
  EXPECT_EQ(kernels::sum_of_squares(0, &nothing), 0.0f);
}

TEST(SumOfSquares, is_not_finite_if_any_element_is_not) {
  attune::Tensor<float, 1, kMax> x{};
  for (const float bad : {check::kNan<float>, check::kInfinity<float>, -check::kInfinity<float>, 1e20f}) {
    for (int i = 0; i < kMax; ++i) {
      x.values[i] = bad;
      const float sum = kernels::sum_of_squares(kMax, x.data());
      EXPECT_FALSE(sum - sum == 0) << i;
      x.values[i] = 0;
    }
  }
}
