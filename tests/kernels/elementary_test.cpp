#include <attune/kernels/simd/elementary.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kInfinity;
using check::kNan;

// The error of `value` in units of the last place of a float near `exact`.
double ulp_error(float value, double exact) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(exact)) & 0x7F800000u;
  const double ulp = static_cast<double>(std::bit_cast<float>(bits)) * 0x1p-23;
  const double error = (static_cast<double>(value) - exact) / ulp;
  return error < 0 ? -error : error;
}

template <class Scalar>
void expect_exponential_limits() {
  EXPECT_EQ(kernels::exponential(Scalar(0)), Scalar(1));
  EXPECT_EQ(kernels::exponential(Scalar(-0.0)), Scalar(1));
  EXPECT_TRUE(check::same_bits(kernels::exponential(-kInfinity<Scalar>), Scalar(0)));
  EXPECT_TRUE(check::same_bits(kernels::exponential(std::numeric_limits<Scalar>::lowest()), Scalar(0)));
  EXPECT_TRUE(check::is_nan(kernels::exponential(kNan<Scalar>)));
}

// Packets of arguments that end in special values, against scalars.
template <class Scalar>
void expect_packets_equal_scalars(double low) {
  constexpr int kCount = 77;
  attune::Rng rng(23);
  attune::Tensor<Scalar, 1, kCount> x, packets{};
  check::fill(x, rng, low, 1);
  x.values[3] = -kInfinity<Scalar>;
  x.values[20] = static_cast<Scalar>(low);
  x.values[kCount - 1] = std::numeric_limits<Scalar>::lowest();
  kernels::for_each_packet<Scalar>(kCount, [&]<class P>(int i) {
    kernels::store(packets.data() + i, kernels::exponential(kernels::load<P>(x.data() + i)));
  });
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(check::same_bits(packets.values[i], kernels::exponential(x.values[i])));
  }
  using P = kernels::Packet<Scalar>;
  Scalar lanes[kernels::kLanes<P>];
  kernels::store(lanes, kernels::exponential(kernels::broadcast<P>(kNan<Scalar>)));
  for (const Scalar lane : lanes) EXPECT_TRUE(check::is_nan(lane));
}

// Some packets at once, whatever stands among them, against scalars.
template <class Scalar, int count>
void expect_several_equal_one(double low) {
  using P = kernels::Packet<Scalar>;
  using Bits = typename kernels::detail::ExpCoefficients<Scalar>::Bits;
  constexpr int kCount = count * kernels::kLanes<P>;
  // The last numbers within limits and the first ones beyond them; a NaN of every bit, as of erased flash.
  const Scalar special[] = {-1,
                            static_cast<Scalar>(low),
                            static_cast<Scalar>(low * 1.00001),
                            static_cast<Scalar>(low + 0.02),
                            static_cast<Scalar>(low + 1),
                            -kInfinity<Scalar>,
                            std::numeric_limits<Scalar>::lowest(),
                            1,
                            2,
                            80,
                            kNan<Scalar>,
                            std::bit_cast<Scalar>(~Bits{0}),
                            std::bit_cast<Scalar>(static_cast<Bits>(~Bits{0} >> 1))};
  attune::Rng rng(29);
  for (const Scalar one : special) {
    for (int at = 0; at < kCount; ++at) {
      attune::Tensor<Scalar, 1, kCount> x, got;
      check::fill(x, rng, -20, 0);
      x.values[at] = one;
      kernels::Array<P, count> packets;
      for (int i = 0; i < count; ++i) packets[i] = kernels::load<P>(x.data() + i * kernels::kLanes<P>);
      kernels::exponentials<count>(packets);
      for (int i = 0; i < count; ++i) kernels::store(got.data() + i * kernels::kLanes<P>, packets[i]);
      for (int i = 0; i < kCount; ++i) {
        const Scalar expected = kernels::exponential(x.values[i]);
        if (expected != expected) {
          ASSERT_TRUE(check::is_nan(got.values[i]));
        } else {
          ASSERT_TRUE(check::same_bits(got.values[i], expected)) << x.values[i];
        }
      }
    }
  }
}

}  // namespace

TEST(Elementary, exponential_is_within_one_ulp_where_softmax_uses_it) {
  double largest = 0;
  for (int i = 0; i <= 4000; ++i) {
    const float x = -87.0f * static_cast<float>(i) / 4000.0f;
    const double error = ulp_error(kernels::exponential(x), kernels::exponential(static_cast<double>(x)));
    largest = error > largest ? error : largest;
  }
  // Where e^r < 1: ½ ulp from the last sum, ¼ each from r and from the polynomial, and what the polynomial
  // leaves out. The roundings of `unfused` stay below 1.
  EXPECT_LE(largest, ATTUNE_FUSED ? 1.1 : 1.0);
}

TEST(Elementary, exponential_of_a_double_obeys_its_functional_equation) {
  // e^x·e^(−x) = 1 to four roundings of 2⁻⁵³ and two errors of 1 ulp (2⁻⁵² relative at most).
  for (int i = 0; i < 500; ++i) {
    const double x = 0.03 * i;
    EXPECT_NEAR(kernels::exponential(x) * kernels::exponential(-x), 1.0, 5 * 0x1p-52);
  }
  EXPECT_NEAR(kernels::exponential(1.0), 2.718281828459045, 0x1p-51);
}

TEST(Elementary, exponential_has_limits) {
  expect_exponential_limits<float>();
  expect_exponential_limits<double>();
  EXPECT_GT(kernels::exponential(-87.0f), 0.0f);
  EXPECT_GT(kernels::exponential(-708.0), 0.0);
  EXPECT_EQ(kernels::exponential(-87.00001f), 0.0f);
}

TEST(Elementary, exponential_of_packets_has_the_bits_of_scalars) {
  expect_packets_equal_scalars<float>(-88);
  expect_packets_equal_scalars<double>(-709);
}

TEST(Elementary, exponential_has_the_same_bits_everywhere) {
  attune::Rng rng(29);
  check::BitHash floats, doubles;
  for (int i = 0; i < 2000; ++i) {
    floats.add(kernels::exponential(rng.uniform(-87.0f, 1.0f)));
    doubles.add(kernels::exponential(rng.uniform(-708.0, 1.0)));
  }
  EXPECT_EQ(floats.value(), check::by_policy(0xA36B0F35u, 0x0C6D359Cu));
  EXPECT_EQ(doubles.value(), check::by_policy(0xC017A6D1u, 0xD7B12B78u));
}

TEST(Elementary, logarithm_is_within_two_ulp) {
  attune::Rng rng(31);
  double largest = 0;
  for (int i = 0; i < 2000; ++i) {
    const float x = std::bit_cast<float>(0x00800000u + rng.next() % 0x7F000000u);  // any normal number
    const double error = ulp_error(kernels::logarithm(x), kernels::logarithm(static_cast<double>(x)));
    largest = error > largest ? error : largest;
  }
  EXPECT_LE(largest, 2.0);
  EXPECT_EQ(kernels::logarithm(1.0f), 0.0f);
  EXPECT_EQ(kernels::logarithm(1.0), 0.0);
}

TEST(Elementary, logarithm_inverts_exponential) {
  for (int i = -300; i <= 300; ++i) {
    const double x = i;
    const double error = kernels::logarithm(kernels::exponential(x)) - x;
    // An ulp of e^x is 2⁻⁵² relative; the logarithm itself is off by 2 ulp of x.
    EXPECT_NEAR(error, 0.0, 0x1p-52 + 2 * 0x1p-52 * (x < 0 ? -x : x));
  }
}

TEST(Elementary, cosine_pi_has_its_known_values) {
  EXPECT_EQ(kernels::cosine_pi(0.0f), 1.0f);
  EXPECT_EQ(kernels::cosine_pi(1.0f), -1.0f);
  EXPECT_NEAR(kernels::cosine_pi(0.5), 0.0, 1e-15);
  EXPECT_NEAR(kernels::cosine_pi(1.0 / 3), 0.5, 1e-15);
  EXPECT_NEAR(kernels::cosine_pi(0.25), 0.70710678118654752440, 1e-15);
  for (int i = 0; i <= 1000; ++i) {
    const float x = static_cast<float>(i) / 1000.0f;
    EXPECT_NEAR(kernels::cosine_pi(x), kernels::cosine_pi(static_cast<double>(x)), 3e-7);
  }
}

TEST(Elementary, logarithm_and_cosine_have_the_same_bits_everywhere) {
  attune::Rng rng(37);
  check::BitHash logarithms, cosines;
  for (int i = 0; i < 2000; ++i) {
    const float x = rng.uniform();
    logarithms.add(kernels::logarithm(x + 0x1p-24f));
    cosines.add(kernels::cosine_pi(x));
  }
  EXPECT_EQ(logarithms.value(), check::by_policy(0x2387CE46u, 0x2387CE46u));
  EXPECT_EQ(cosines.value(), check::by_policy(0xEDA0C6BCu, 0xDA401C0Eu));
}

TEST(Elementary, several_exponentials_have_the_bits_of_each) {
  expect_several_equal_one<float, 1>(-87);
  expect_several_equal_one<float, 4>(-87);
  expect_several_equal_one<double, 3>(-708);
}
