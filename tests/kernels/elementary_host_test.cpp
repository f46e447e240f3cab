// The elementary functions against libm in a wider type, densely.
#include <cmath>

#include <attune/kernels/simd/elementary.hpp>

#include "check.hpp"
#include "kernels/dense_error.hpp"

namespace {

namespace kernels = attune::kernels;

using check::largest_error;
using check::largest_ulp_error;

const auto exponential = [](auto x) { return kernels::exponential(x); };
const auto logarithm = [](auto x) { return kernels::logarithm(x); };
const auto cosine_pi = [](auto x) { return kernels::cosine_pi(x); };
const auto exact_exponential = [](long double x) { return std::exp(x); };
const auto exact_logarithm = [](long double x) { return std::log(x); };
const auto exact_cosine_pi = [](long double x) {
  return std::cos(3.14159265358979323846264338327950288L * x);
};

}  // namespace

TEST(ElementaryDense, exponential_of_float) {
  EXPECT_LE(largest_ulp_error<float>(exponential, exact_exponential, -87, 0), ATTUNE_FUSED ? 1.1 : 1.0);
}
TEST(ElementaryDense, exponential_of_float_near_zero) {
  EXPECT_LE(largest_ulp_error<float>(exponential, exact_exponential, -1, 0), 1.0);
}
TEST(ElementaryDense, exponential_of_double) {
  EXPECT_LE(largest_ulp_error<double>(exponential, exact_exponential, -708, 0), 1.0);
}
TEST(ElementaryDense, exponential_of_double_near_zero) {
  EXPECT_LE(largest_ulp_error<double>(exponential, exact_exponential, -1, 0), 1.0);
}
TEST(ElementaryDense, logarithm_of_float) {
  EXPECT_LE(largest_ulp_error<float>(logarithm, exact_logarithm, 1e-7, 1), 2.0);
  EXPECT_LE(largest_ulp_error<float>(logarithm, exact_logarithm, 0.999, 1.001), 2.0);
  EXPECT_LE(largest_ulp_error<float>(logarithm, exact_logarithm, 1, 1e6), 2.0);
}
TEST(ElementaryDense, logarithm_of_double) {
  EXPECT_LE(largest_ulp_error<double>(logarithm, exact_logarithm, 1e-7, 1), 2.0);
  EXPECT_LE(largest_ulp_error<double>(logarithm, exact_logarithm, 0.999, 1.001), 2.0);
}
TEST(ElementaryDense, cosine_of_float) {
  // 1 − 2s² at s = √½: 4s·δs with δs two roundings of 2⁻²⁵ and as much from the argument, and two roundings
  // of 2⁻²⁵ after.
  EXPECT_LE(largest_error<float>(cosine_pi, exact_cosine_pi, 0, 1), 3e-7);
}
TEST(ElementaryDense, cosine_of_double) {
  EXPECT_LE(largest_error<double>(cosine_pi, exact_cosine_pi, 0, 1), 1e-15);
}
TEST(ElementaryDense, square_root_of_double_matches_libm) {
  attune::Rng rng(41);
  for (int i = 0; i < 100'000; ++i) {
    const auto bits =
        (static_cast<std::uint64_t>(rng.next()) << 32 | rng.next()) >> 1;  // any positive number
    const auto x = std::bit_cast<double>(bits);
    if (!(x < std::numeric_limits<double>::infinity())) continue;
    ASSERT_EQ(kernels::square_root(x), std::sqrt(x));
    ASSERT_EQ(kernels::detail::software_square_root(x), std::sqrt(x));
  }
}
