#include <attune/kernels/simd/lanes.hpp>

#include <array>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kInfinity;
using check::kNan;

template <class Scalar>
constexpr int kCount = kernels::kLanes<kernels::Packet<Scalar>>;

template <class Scalar>
struct Operand {
  Scalar lane[kCount<Scalar>];
  Operand(Scalar low, Scalar high, std::uint64_t seed) {
    attune::Rng rng(seed);
    for (Scalar& value : lane) value = rng.uniform(low, high);
  }
  [[nodiscard]] kernels::Lanes<Scalar> lanes() const { return std::bit_cast<kernels::Lanes<Scalar>>(*this); }
};

// Every lane of function(Lanes…) has the bits of function(the lane's scalars…).
template <class Scalar, class Function, class... Operands>
void expect_lane_by_lane(const Function& function, const Operands&... operands) {
  const auto together =
      std::bit_cast<std::array<Scalar, std::size_t{kCount<Scalar>}>>(function(operands.lanes()...));
  for (int i = 0; i < kCount<Scalar>; ++i) {
    const Scalar alone = function(operands.lane[i]...);
    EXPECT_TRUE(check::same_bits(together[static_cast<std::size_t>(i)], alone)) << i;
  }
}

template <class Scalar>
void check_operations() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Operand<Scalar> a(-3, 3, seed), b(-3, 3, seed + 100), c(-3, 3, seed + 200),
        positive(0, 9, seed + 300);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x + y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x - y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x * y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x / y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x) { return -x; }, a);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x += y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return x *= y; }, a, b);
    expect_lane_by_lane<Scalar>([](auto x, auto y) { return kernels::maximum(x, y); }, a, b);
    expect_lane_by_lane<Scalar>([](auto x) { return kernels::magnitude(x); }, a);
    expect_lane_by_lane<Scalar>([](auto x) { return kernels::square_root(x); }, positive);
    expect_lane_by_lane<Scalar>([](auto x) { return kernels::exponential(x); }, a);
    expect_lane_by_lane<Scalar>([](auto x, auto y, auto z) { return kernels::multiply_add(x, y, z); }, a, b,
                                c);
    expect_lane_by_lane<Scalar>([](auto x, auto y, auto z) { return kernels::subtract_product(x, y, z); }, a,
                                b, c);
    expect_lane_by_lane<Scalar>(
        [](auto x, auto y, auto z) { return kernels::select_less(x, y, z, decltype(x)(Scalar(7))); }, a, b,
        c);
    expect_lane_by_lane<Scalar>([](auto x) { return x * decltype(x)(Scalar(0.1)); }, a);
  }
}

}  // namespace

TEST(Lanes, compute_lane_by_lane) {
  check_operations<float>();
  check_operations<double>();
}

TEST(Lanes, select_less_returns_the_alternative_for_nan) {
  using Lanes = kernels::Lanes<float>;
  const auto chosen = kernels::select_less(Lanes(kNan<float>), Lanes(0.0f), Lanes(1.0f), Lanes(2.0f));
  EXPECT_EQ((std::bit_cast<std::array<float, std::size_t{kCount<float>}>>(chosen)[0]), 2.0f);
  EXPECT_EQ(kernels::select_less(kNan<float>, 0.0f, 1.0f, 2.0f), 2.0f);
  EXPECT_EQ(kernels::select_less(-kInfinity<float>, 0.0f, 1.0f, 2.0f), 1.0f);
}
