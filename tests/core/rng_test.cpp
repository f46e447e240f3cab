#include <attune/core/rng.hpp>

#include "check.hpp"

namespace {

constexpr std::uint32_t third_number() {
  attune::Rng rng(42);
  (void)rng.next();
  (void)rng.next();
  return rng.next();
}

struct Statistics {
  double mean = 0, variance = 0, lowest = 1e9, highest = -1e9;
};
template <class Draw>
Statistics statistics(const Draw& draw, int count) {
  Statistics result;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double x = static_cast<double>(draw());
    result.mean += x;
    squares += x * x;
    result.lowest = x < result.lowest ? x : result.lowest;
    result.highest = x > result.highest ? x : result.highest;
  }
  result.mean /= count;
  result.variance = squares / count - result.mean * result.mean;
  return result;
}

constexpr int kDraws = 10'000;

}  // namespace

// Computed with the reference algorithm, pcg32 with its default stream, in arbitrary-precision integers.
TEST(Rng, starts_as_pcg32_does) {
  attune::Rng rng(42);
  for (const std::uint32_t number : {0xC2F57BD6u, 0x6B07C4A9u, 0x72B7B29Bu, 0x44215383u, 0xF5AF5EADu})
    EXPECT_EQ(rng.next(), number);
  attune::Rng zero(0);
  for (const std::uint32_t number : {0xE823A24Eu, 0x7A7ECBD9u, 0x89FD6C06u, 0xAE646AA8u, 0xCD3CF945u})
    EXPECT_EQ(zero.next(), number);
}

// The reference algorithm's first numbers from 1234567.
TEST(Rng, mixes_as_splitmix64_does) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t number : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                     4593380528125082431u, 16408922859458223821u})
    EXPECT_EQ(attune::detail::mix(state += attune::detail::kGamma), number);
}

TEST(Rng, runs_at_compile_time) {
  constexpr std::uint32_t kThird = third_number();
  EXPECT_EQ(kThird, third_number());
}

TEST(Rng, copies_continue_independently) {
  attune::Rng a(5);
  (void)a.next();
  attune::Rng b = a;
  const std::uint32_t next = a.next();
  EXPECT_EQ(b.next(), next);
  static_assert(sizeof(attune::Rng) == 8 && std::is_trivially_copyable_v<attune::Rng>);
}

TEST(Rng, seeds_give_other_sequences) { EXPECT_NE(attune::Rng(1).next(), attune::Rng(2).next()); }

TEST(Rng, uniform_has_the_moments_of_a_uniform) {
  attune::Rng rng(7);
  const Statistics s = statistics([&] { return rng.uniform(); }, kDraws);
  // Five standard errors: σ/√n with σ² = 1/12, and of the variance √(1/180/n).
  EXPECT_NEAR(s.mean, 0.5, 5 * 0.2887 / 100);
  EXPECT_NEAR(s.variance, 1.0 / 12, 5 * 0.0745 / 100);
  EXPECT_GE(s.lowest, 0.0);
  EXPECT_LT(s.highest, 1.0);
  EXPECT_LT(s.lowest, 0.002);
  EXPECT_GT(s.highest, 0.998);
}

TEST(Rng, uniform_between_bounds) {
  attune::Rng rng(8);
  const Statistics s = statistics([&] { return rng.uniform(-2.0f, 4.0f); }, kDraws);
  EXPECT_NEAR(s.mean, 1.0, 5 * 6 * 0.2887 / 100);
  EXPECT_NEAR(s.variance, 3.0, 5 * 36 * 0.0745 / 100);
  EXPECT_GE(s.lowest, -2.0);
  EXPECT_LT(s.highest, 4.0);
}

TEST(Rng, uniform_between_integers_is_a_float_between_them) {
  attune::Rng integers(8), floats(8), mixed(8), named(8), doubles(8);
  static_assert(std::is_same_v<decltype(integers.uniform(-1, 1)), float>);
  static_assert(std::is_same_v<decltype(integers.uniform(-1, 1.0f)), float>);
  static_assert(std::is_same_v<decltype(integers.uniform(-1.0, 1)), double>);
  static_assert(std::is_same_v<decltype(integers.uniform<float>(-1.0, 1.0)), float>);
  for (int i = 0; i < 100; ++i) {
    const float expected = floats.uniform(-1.0f, 1.0f);
    EXPECT_EQ(integers.uniform(-1, 1), expected);
    EXPECT_EQ(mixed.uniform(-1, 1.0f), expected);
    EXPECT_EQ(named.uniform<float>(-1, 1), expected);
    EXPECT_EQ(doubles.uniform(-1.0, 1), static_cast<double>(expected));  // 24 bits are exact in both
  }
  const Statistics s = statistics([&] { return integers.uniform(-1, 1); }, kDraws);
  EXPECT_NEAR(s.mean, 0, 5 * 2 * 0.2887 / 100);
  EXPECT_NEAR(s.variance, 1.0 / 3, 5 * 4 * 0.0745 / 100);
  EXPECT_GE(s.lowest, -1.0);
  EXPECT_LT(s.highest, 1.0);
  // Bounds whose difference is no integer of theirs.
  EXPECT_GE(integers.uniform(0u, 1u), 0.0f);
  EXPECT_LT(integers.uniform(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()),
            2147483649.0f);
}

TEST(Rng, normal_has_the_moments_of_a_normal) {
  attune::Rng rng(9);
  const Statistics s = statistics([&] { return rng.normal(); }, kDraws);
  EXPECT_NEAR(s.mean, 0.0, 5 * 1.0 / 100);
  EXPECT_NEAR(s.variance, 1.0, 5 * 1.4143 / 100);
  EXPECT_LT(s.lowest, -3.0);
  EXPECT_GT(s.highest, 3.0);
  attune::Rng wide(9);
  const Statistics d = statistics([&] { return wide.normal<double>(); }, kDraws);
  EXPECT_NEAR(d.mean, s.mean, 1e-6);
  EXPECT_NEAR(d.variance, s.variance, 1e-5);
}

TEST(Rng, has_the_same_bits_everywhere) {
  attune::Rng rng(10);
  check::BitHash uniforms, normals;
  for (int i = 0; i < 1000; ++i) {
    uniforms.add(rng.uniform());
    uniforms.add(rng.uniform(-3.0f, 0.5f));
    normals.add(rng.normal());
    normals.add(rng.normal<double>());
  }
  EXPECT_EQ(uniforms.value(), check::by_policy(0x754F7CB5u, 0x9DDAE32Fu));
  EXPECT_EQ(normals.value(), check::by_policy(0xA803F0ECu, 0x50577C75u));
}
