#include <attune/kernels/simd/arithmetic.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kInfinity;
using check::kNan;

constexpr int kCount = 71;  // every packet width, and an odd rest

// The operation over packets, then over scalars: the same bits, lane by lane.
template <class Scalar, class Operation>
bool packets_equal_scalars(const Operation& operation, double low, double high) {
  attune::Tensor<Scalar, 3, kCount> in;
  attune::Rng rng(17);
  check::fill(in, rng, low, high);
  attune::Tensor<Scalar, 1, kCount> packets{}, scalars{};
  const Scalar *a = &in(0, 0), *b = &in(1, 0), *c = &in(2, 0);
  kernels::for_each_packet<Scalar>(kCount, [&]<class P>(int i) {
    kernels::store(packets.data() + i,
                   P(operation(kernels::load<P>(a + i), kernels::load<P>(b + i), kernels::load<P>(c + i))));
  });
  for (int i = 0; i < kCount; ++i) scalars.values[i] = operation(a[i], b[i], c[i]);
  return check::same_bits(packets, scalars);
}
template <class Operation>
void expect_packets_equal_scalars(const Operation& operation, double low = -3, double high = 3) {
  EXPECT_TRUE(packets_equal_scalars<float>(operation, low, high));
  EXPECT_TRUE(packets_equal_scalars<double>(operation, low, high));
}

// r = √a correctly rounded: a lies between the squares of the midpoints around r, which are exact in double.
bool is_correct_root(float root, float a) {
  const auto bits = std::bit_cast<std::uint32_t>(root);
  const double r = static_cast<double>(root);
  const double above = (r + static_cast<double>(std::bit_cast<float>(bits + 1))) / 2;
  const double below = (r + static_cast<double>(std::bit_cast<float>(bits - 1))) / 2;
  return below * below < static_cast<double>(a) && static_cast<double>(a) < above * above;
}

template <class Scalar, class Root>
void expect_special_roots(const Root& root) {
  EXPECT_TRUE(check::same_bits(root(Scalar(0)), Scalar(0)));
  EXPECT_TRUE(check::same_bits(root(Scalar(-0.0)), Scalar(-0.0)));
  EXPECT_EQ(root(kInfinity<Scalar>), kInfinity<Scalar>);
  EXPECT_TRUE(check::is_nan(root(Scalar(-1))));
  EXPECT_TRUE(check::is_nan(root(-kInfinity<Scalar>)));
  EXPECT_TRUE(check::is_nan(root(kNan<Scalar>)));
  EXPECT_EQ(root(Scalar(4)), Scalar(2));
  EXPECT_EQ(root(Scalar(1)), Scalar(1));
}

// The optimizer does not know it.
template <class Scalar>
Scalar at_run_time(Scalar value) {
  volatile Scalar hidden = value;
  return hidden;
}

// A float of any exponent, subnormals included.
float any_positive(attune::Rng& rng) { return std::bit_cast<float>(1 + rng.next() % 0x7F7FFFFFu); }
double any_positive_double(attune::Rng& rng) {
  const std::uint64_t high = rng.next() % 0x7FEFFFFFu;
  return std::bit_cast<double>((high << 32 | rng.next()) + 1);
}

}  // namespace

TEST(Arithmetic, packets_and_scalars_give_the_same_bits) {
  expect_packets_equal_scalars([](auto a, auto b, auto) { return kernels::add(a, b); });
  expect_packets_equal_scalars([](auto a, auto b, auto) { return kernels::subtract(a, b); });
  expect_packets_equal_scalars([](auto a, auto b, auto) { return kernels::multiply(a, b); });
  expect_packets_equal_scalars([](auto a, auto b, auto c) { return kernels::multiply_add(a, b, c); });
  expect_packets_equal_scalars([](auto a, auto b, auto c) { return kernels::subtract_product(a, b, c); });
  expect_packets_equal_scalars([](auto a, auto b, auto) { return kernels::maximum(a, b); });
  expect_packets_equal_scalars([](auto a, auto, auto) { return kernels::magnitude(a); });
  expect_packets_equal_scalars([](auto a, auto b, auto c) { return kernels::select_less(a, b, c, a); });
  expect_packets_equal_scalars([](auto a, auto b, auto) { return kernels::divide(a, b); });
  expect_packets_equal_scalars([](auto a, auto, auto) { return kernels::square_root(a); }, 0, 100);
}

TEST(Arithmetic, multiply_add_rounds_as_its_policy_says) {
  const float a = at_run_time(1.0f + 0x1p-23f), c = at_run_time(1.0f + 0x1p-22f);
  EXPECT_EQ(kernels::multiply_add(a, a, -c), ATTUNE_FUSED ? 0x1p-46f : 0.0f);
  EXPECT_EQ(kernels::subtract_product(c, a, a), ATTUNE_FUSED ? -0x1p-46f : 0.0f);
  const double x = at_run_time(1.0 + 0x1p-52), z = at_run_time(1.0 + 0x1p-51);
  EXPECT_EQ(kernels::multiply_add(x, x, -z), ATTUNE_FUSED ? 0x1p-104 : 0.0);
}

TEST(Arithmetic, the_compiler_does_not_contract) {
  const float a = at_run_time(1.0f + 0x1p-23f), c = at_run_time(1.0f + 0x1p-22f);
  EXPECT_EQ(a * a - c, 0.0f);
}

TEST(Arithmetic, divide_is_correctly_rounded) {
  attune::Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const float a = rng.uniform(-8.0f, 8.0f), b = rng.uniform(0.001f, 9.0f);
    // The quotient of two floats, rounded to double and then to float, is the quotient rounded once.
    ASSERT_EQ(kernels::divide(a, b), static_cast<float>(static_cast<double>(a) / static_cast<double>(b)));
  }
}

TEST(Arithmetic, square_root_is_correctly_rounded) {
  attune::Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const float a = any_positive(rng);
    ASSERT_TRUE(is_correct_root(kernels::square_root(a), a));
  }
  expect_special_roots<float>([](float a) { return kernels::square_root(a); });
  expect_special_roots<double>([](double a) { return kernels::square_root(a); });
}

TEST(Arithmetic, software_square_root_is_correctly_rounded) {
  attune::Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const float a = any_positive(rng);
    ASSERT_TRUE(is_correct_root(kernels::detail::software_square_root(a), a));
  }
  expect_special_roots<float>(kernels::detail::software_square_root<float>);
  expect_special_roots<double>(kernels::detail::software_square_root<double>);
}

TEST(Arithmetic, square_roots_of_doubles_have_the_same_bits_everywhere) {
  attune::Rng rng(7);
  check::BitHash used, software;
  for (int i = 0; i < 1000; ++i) {
    const double a = any_positive_double(rng);
    used.add(kernels::square_root(a));
    software.add(kernels::detail::software_square_root(a));
  }
  EXPECT_EQ(used.value(), 1763396224u);
  EXPECT_EQ(software.value(), used.value());
}

TEST(Arithmetic, packets_visit_every_index_once_and_in_order) {
  for (int size = 0; size <= 70; ++size) {
    int next = 0;
    bool in_order = true;
    kernels::for_each_packet<float>(size, [&]<class P>(int i) {
      in_order = in_order && i == next;
      next += kernels::kLanes<P>;
    });
    EXPECT_TRUE(in_order);
    EXPECT_EQ(next, size);
  }
}

TEST(Arithmetic, a_limited_packet_has_at_most_the_requested_lanes) {
  static_assert(kernels::kLanes<kernels::Packet<float, 1>> == 1);
  static_assert(kernels::kLanes<kernels::Packet<float, 7>> <= 7);
  static_assert(kernels::kLanes<kernels::Packet<double, 2>> <= 2);
  static_assert(kernels::kLanes<kernels::Packet<float>> >= kernels::kLanes<kernels::Packet<float, 4>>);
  static_assert(kernels::kIsScalar<kernels::Packet<float, 1>>);
}

TEST(Arithmetic, select_less_returns_the_alternative_for_nan) {
  EXPECT_EQ(kernels::select_less(kNan<float>, 1.0f, 2.0f, 3.0f), 3.0f);
  using P = kernels::Packet<float>;
  float lanes[kernels::kLanes<P>];
  kernels::store(lanes, kernels::select_less(kernels::broadcast<P>(kNan<float>), kernels::broadcast<P>(1.0f),
                                             kernels::broadcast<P>(2.0f), kernels::broadcast<P>(3.0f)));
  for (const float lane : lanes) EXPECT_EQ(lane, 3.0f);
}

TEST(Arithmetic, any_bit_finds_every_bit) {
  using P = kernels::Packet<float>;
  if constexpr (sizeof(P) >= 16) {
    constexpr std::size_t kWords = sizeof(P) / 4;
    std::array<std::uint32_t, kWords> words{};
    EXPECT_FALSE(kernels::any_bit(std::bit_cast<P>(words)));
    for (std::uint32_t& word : words) {
      for (int bit = 0; bit < 32; ++bit) {
        word = std::uint32_t{1} << bit;
        EXPECT_TRUE(kernels::any_bit(std::bit_cast<P>(words)));
      }
      word = 0;
    }
  }
}
