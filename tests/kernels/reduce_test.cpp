#include <attune/kernels/ops/reduce.hpp>

#include <utility>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

// The documented order, spelled out: lane l sums x_l, x_{l+16}, …; then halves are added pairwise.
template <class Scalar>
Scalar plain_sum(const Scalar* x, int size) {
  Scalar lanes[16];
  const int used = size < 16 ? size : 16;
  for (int l = 0; l < used; ++l) {
    lanes[l] = x[l];
    for (int i = l + 16; i < size; i += 16) lanes[l] = lanes[l] + x[i];
  }
  for (int half = 8; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) {
      if (l + half < used) lanes[l] = lanes[l] + lanes[l + half];
    }
  }
  return lanes[0];
}

template <class Scalar>
Scalar plain_largest(const Scalar* x, int size) {
  Scalar largest = x[0];
  for (int i = 1; i < size; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

template <class Scalar>
[[gnu::noinline]] void expect_reduced(Scalar sum, Scalar largest, const Scalar* x, int size) {
  EXPECT_TRUE(check::same_bits(sum, plain_sum(x, size))) << size;
  EXPECT_EQ(largest, plain_largest(x, size)) << size;
}

template <class Scalar, int kSize>
void check_size(const Scalar* x) {
  const auto term = [x]<class P>(int i) { return kernels::load<P>(x + i); };
  expect_reduced(kernels::sum<Scalar, kSize>(term), kernels::largest<Scalar, kSize>(term), x, kSize);
}

template <class Scalar, int... kSizes>
void check_sizes(std::integer_sequence<int, kSizes...>) {
  attune::Rng rng(43);
  attune::Tensor<Scalar, 1, 200> x;
  check::fill(x, rng, -1, 1);
  for (int i = 0; i < x.size; i += 3) x.values[i] *= Scalar(1000);  // so that another order has other bits
  (check_size<Scalar, kSizes + 1>(x.data()), ...);
  check_size<Scalar, 200>(x.data());
}

template <class Scalar>
void check_sizes_of_run_time() {
  attune::Rng rng(44);
  attune::Tensor<Scalar, 1, 200> x;
  check::fill(x, rng, -1, 1);
  for (int i = 0; i < x.size; i += 3) x.values[i] *= Scalar(1000);
  const auto term = [&x]<class P>(int i) { return kernels::load<P>(x.data() + i); };
  for (int size = 1; size <= x.size; ++size) {
    EXPECT_TRUE(check::same_bits(kernels::sum<Scalar>(size, term), plain_sum(x.data(), size))) << size;
  }
}

template <class Scalar, int... kSizes>
void check_dots(std::integer_sequence<int, kSizes...>) {
  constexpr int kMax = 99;
  attune::Rng rng(45);
  attune::Tensor<Scalar, 1, kMax> x, y, products;
  check::fill(x, rng, -1, 1);
  check::fill(y, rng, -1000, 1000);
  for (int i = 0; i < kMax; ++i) products.values[i] = kernels::multiply(x.values[i], y.values[i]);
  const auto check_dot = [&]<int kSize>(std::integral_constant<int, kSize>) {
    const Scalar dot = kernels::dot_of<kSize>(x.data(), y.data());
    EXPECT_TRUE(check::same_bits(dot, plain_sum(products.data(), kSize))) << kSize;
  };
  (check_dot(std::integral_constant<int, kSizes + 1>{}), ...);
  check_dot(std::integral_constant<int, 64>{});
  check_dot(std::integral_constant<int, kMax>{});
}

}  // namespace

TEST(Reduce, sum_of_a_size_of_run_time_has_the_same_order) {
  check_sizes_of_run_time<float>();
  check_sizes_of_run_time<double>();
}

TEST(Reduce, sum_of_every_size_has_the_documented_order) {
  check_sizes<float>(std::make_integer_sequence<int, 70>{});
  check_sizes<double>(std::make_integer_sequence<int, 70>{});
}

TEST(Reduce, dot_of_every_size_has_the_same_order) {
  check_dots<float>(std::make_integer_sequence<int, 50>{});
  check_dots<double>(std::make_integer_sequence<int, 50>{});
}

TEST(Reduce, dot_keeps_the_sign_of_zero_and_a_nan) {
  attune::Tensor<float, 1, 37> x, y;
  for (float& value : x.values) value = -1;
  for (float& value : y.values) value = 0;
  EXPECT_TRUE(check::same_bits(kernels::dot_of<37>(x.data(), y.data()), -0.0f));
  for (float& value : y.values) {
    value = check::kNan<float>;
    EXPECT_TRUE(check::is_nan(kernels::dot_of<37>(x.data(), y.data())));
    value = 0;
  }
}

TEST(Reduce, another_order_would_be_noticed) {
  attune::Rng rng(43);
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    attune::Tensor<float, 1, 70> x;
    check::fill(x, rng, -1000, 1000);
    float left_to_right = 0;
    for (const float value : x.values) left_to_right += value;
    if (plain_sum(x.data(), 70) != left_to_right) ++different;
  }
  EXPECT_GT(different, 50);
}

TEST(Reduce, sum_of_negative_zeros_is_negative_zero) {
  attune::Tensor<float, 1, 21> x;
  for (float& value : x.values) value = -0.0f;
  const auto term = [&x]<class P>(int i) { return kernels::load<P>(x.data() + i); };
  const float sum = kernels::sum<float, 21>(term);
  EXPECT_TRUE(check::same_bits(sum, -0.0f));
}

TEST(Reduce, sum_keeps_a_nan_at_any_position) {
  attune::Tensor<float, 1, 37> x{};
  const auto term = [&x]<class P>(int i) { return kernels::load<P>(x.data() + i); };
  for (int i = 0; i < x.size; ++i) {
    x.values[i] = check::kNan<float>;
    const float sum = kernels::sum<float, 37>(term);
    EXPECT_TRUE(check::is_nan(sum));
    x.values[i] = 0;
  }
}

TEST(Reduce, largest_finds_every_position) {
  attune::Tensor<float, 1, 37> x{};
  const auto term = [&x]<class P>(int i) { return kernels::load<P>(x.data() + i); };
  for (int i = 0; i < x.size; ++i) {
    x.values[i] = 2;
    const float largest = kernels::largest<float, 37>(term);
    EXPECT_EQ(largest, 2.0f);
    x.values[i] = 0;
  }
}
