#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/portable/replace_packets.hpp>

#include <algorithm>
#include <utility>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

constexpr int kMax = 150;  // several times four packets of any processor, and a rest

// x becomes 3·x; what stands around it stays. The sum of what is seen is that of what is there.
template <class Scalar, int kSize>
void check_size() {
  attune::Rng rng(61);
  attune::Tensor<Scalar, 1, kMax + 2> before, x;
  check::fill(before, rng, -1, 1);
  x = before;
  kernels::detail::PartialSums<Scalar, kSize> sums;
  int most = 0;
  kernels::replace_packets<kSize>(
      x.data() + 1,
      [&]<int count, class P>(P* packets) {
        most = count > most ? count : most;
        for (int i = 0; i < count; ++i) {
          packets[i] = kernels::multiply(packets[i], kernels::broadcast<P>(Scalar(3)));
          // Those behind the last one are −∞, which adds nothing to a sum of exponentials.
          packets[i] = kernels::select_less(packets[i], kernels::broadcast<P>(Scalar(-100)),
                                            kernels::broadcast<P>(Scalar(0)), packets[i]);
        }
      },
      [&](int packet, const auto& replaced) { sums.add_terms(packet, replaced); });
  constexpr int kLanes = kernels::kLanes<kernels::Packet<Scalar>>;
  EXPECT_LE(most, kLanes == 1 ? 4 : std::max(4, kernels::kSumLanes / kLanes));
  for (int i = 0; i < x.size; ++i) {
    const bool inside = i > 0 && i <= kSize;
    ASSERT_TRUE(check::same_bits(x.values[i], inside ? before.values[i] * 3 : before.values[i])) << kSize;
  }
  if constexpr (kernels::kLanes < kernels::Packet < Scalar >>> 1) {
    const Scalar expected = kernels::sum_of<kSize>(x.data() + 1);
    EXPECT_TRUE(check::same_bits(sums.total(), expected)) << kSize;
  }
}

template <class Scalar, int... kSizes>
void check_sizes(std::integer_sequence<int, kSizes...>) {
  (check_size<Scalar, kSizes + 1>(), ...);
  check_size<Scalar, 98>();
  check_size<Scalar, kMax>();
}

}  // namespace

TEST(ReplacePackets, every_scalar_is_replaced_once_and_no_other) {
  check_sizes<float>(std::make_integer_sequence<int, 33>());
  check_sizes<double>(std::make_integer_sequence<int, 9>());
}
