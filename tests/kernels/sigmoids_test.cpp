#include <attune/kernels/simd/sigmoids.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kInfinity;
using check::kNan;

const auto sigmoid = []<class P>(const P& x) {
  P complement;
  return kernels::sigmoid(x, complement);
};
const auto sigmoid_complement = []<class P>(const P& x) {
  P complement;
  (void)kernels::sigmoid(x, complement);
  return complement;
};
const auto normal_tail = []<class P>(const P& x) { return kernels::normal_tail(x); };
const auto normal_density = []<class P>(const P& x) { return kernels::normal_density(x); };

template <class Visit>
void for_each_function(const Visit& visit) {
  visit("sigmoid", sigmoid);
  visit("sigmoid complement", sigmoid_complement);
  visit("normal density", normal_density);
  visit("normal tail", normal_tail);
}

// The largest |float's − double's| in ulp of double's value.
template <class Function>
double float_against_double(const Function& function, double low, double high) {
  double largest = 0;
  for (int i = 0; i <= 3000; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / 3000);
    const double exact = function(static_cast<double>(x));
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(exact)) & 0x7F800000u;
    const double ulp = static_cast<double>(std::bit_cast<float>(bits)) * 0x1p-23;
    const double error = static_cast<double>(function(x)) - exact;
    const double ulps = (error < 0 ? -error : error) / ulp;
    if (!(ulps <= largest)) largest = ulps;
  }
  return largest;
}

template <class Scalar>
void expect_packets_equal_scalars() {
  constexpr int kCount = 77;
  attune::Rng rng(43);
  attune::Tensor<Scalar, 1, kCount> x, packets{};
  check::fill(x, rng, -12, 12);
  for (int i = 0; i < 40; ++i) x.values[i] *= static_cast<Scalar>(0.08);
  x.values[2] = 0;
  x.values[3] = static_cast<Scalar>(-0.0);
  x.values[21] = static_cast<Scalar>(0.625);
  x.values[22] = static_cast<Scalar>(-0.5);
  x.values[50] = 100;
  x.values[kCount - 1] = -kInfinity<Scalar>;
  for_each_function([&](const char* name, const auto& function) {
    SCOPED_TRACE(name);
    kernels::for_each_packet<Scalar>(kCount, [&]<class P>(int i) {
      kernels::store(packets.data() + i, function(kernels::load<P>(x.data() + i)));
    });
    for (int i = 0; i < kCount; ++i) {
      ASSERT_TRUE(check::same_bits(packets.values[i], function(x.values[i])));
    }
  });
  using P = kernels::Packet<Scalar>;
  for_each_function([&](const char* name, const auto& function) {
    SCOPED_TRACE(name);
    Scalar lanes[kernels::kLanes<P>];
    kernels::store(lanes, function(kernels::broadcast<P>(kNan<Scalar>)));
    for (const Scalar lane : lanes) EXPECT_TRUE(check::is_nan(lane));
  });
}

template <class Scalar>
void expect_limits() {
  constexpr Scalar kInf = kInfinity<Scalar>;
  EXPECT_EQ(sigmoid(Scalar(0)), Scalar(0.5));
  EXPECT_EQ(sigmoid(kInf), Scalar(1));
  EXPECT_EQ(sigmoid(-kInf), Scalar(0));
  EXPECT_EQ(sigmoid_complement(kInf), Scalar(0));
  EXPECT_EQ(normal_tail(Scalar(0)), Scalar(0.5));
  EXPECT_EQ(normal_tail(kInf), Scalar(0));
  EXPECT_EQ(normal_tail(-kInf), Scalar(0));
  EXPECT_EQ(normal_density(-kInf), Scalar(0));
  for_each_function([](const char* name, const auto& function) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(check::is_nan(function(kNan<Scalar>)));
  });
}

}  // namespace

// Against libm in a wider type: sigmoids_host_test.cpp.

TEST(Sigmoids, floats_are_within_their_errors_of_doubles) {
  EXPECT_LE(float_against_double(sigmoid, -80, 80), 3.0);
  EXPECT_LE(float_against_double(sigmoid_complement, -80, 80), 3.0);
  for (int i = -800; i <= 800; ++i) {
    const float x = static_cast<float>(i) / 100;
    EXPECT_NEAR(normal_tail(x), normal_tail(static_cast<double>(x)), 3e-8);
    EXPECT_NEAR(normal_density(x), normal_density(static_cast<double>(x)), 6e-8);
  }
}

TEST(Sigmoids, have_their_known_values) {
  EXPECT_NEAR(sigmoid(1.0), 0.73105857863000488, 4e-16);
  EXPECT_NEAR(normal_tail(2.0), 0.022750131948179207, 2e-17);
  EXPECT_NEAR(normal_density(1.0), 0.24197072451914335, 1e-16);
}

TEST(Sigmoids, of_the_normal_distribution_are_symmetric_to_the_bit) {
  attune::Rng rng(47);
  for (int i = 0; i < 500; ++i) {
    const float x = rng.uniform(-6.0f, 6.0f);
    EXPECT_EQ(normal_density(-x), normal_density(x));
    EXPECT_EQ(normal_tail(-x), normal_tail(x));
  }
}

TEST(Sigmoids, have_limits) {
  expect_limits<float>();
  expect_limits<double>();
}

TEST(Sigmoids, of_packets_have_the_bits_of_scalars) {
  expect_packets_equal_scalars<float>();
  expect_packets_equal_scalars<double>();
}

TEST(Sigmoids, have_the_same_bits_everywhere) {
  check::BitHash floats, doubles;
  for_each_function([&](const char*, const auto& function) {
    attune::Rng rng(53);
    for (int i = 0; i < 500; ++i) {
      floats.add(function(rng.uniform(-4.0f, 4.0f)));
      doubles.add(function(rng.uniform(-4.0, 4.0)));
    }
  });
  EXPECT_EQ(floats.value(), check::by_policy(0xA47DC5B5u, 0x21CA6BCBu));
  EXPECT_EQ(doubles.value(), check::by_policy(0xB527C6E4u, 0xFD57EAC1u));
}
