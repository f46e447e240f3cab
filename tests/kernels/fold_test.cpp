#include <attune/kernels/simd/fold.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;

// Halves joined pairwise, lane by lane.
template <class P, class Join>
kernels::ScalarOf<P> plain_fold(const P& packet, const Join& join) {
  kernels::ScalarOf<P> lanes[kernels::kLanes<P>];
  kernels::store(lanes, packet);
  for (int half = kernels::kLanes<P> / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = join(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

template <class Scalar, int kMaxLanes>
void check_fold() {
  using P = kernels::Packet<Scalar, kMaxLanes>;
  attune::Rng rng(101);
  for (int i = 0; i < 20; ++i) {
    attune::Tensor<Scalar, 1, kernels::kLanes<P>> values;
    check::fill(values, rng, -1000, 1000);
    const P packet = kernels::load<P>(values.data());
    const auto sum = [](const auto& a, const auto& b) { return kernels::add(a, b); };
    const auto largest = [](const auto& a, const auto& b) { return kernels::maximum(a, b); };
    EXPECT_TRUE(check::same_bits(kernels::fold(packet, sum), plain_fold(packet, sum)));
    EXPECT_TRUE(check::same_bits(kernels::fold(packet, largest), plain_fold(packet, largest)));
  }
}

}  // namespace

TEST(Fold, joins_halves_pairwise_whatever_the_width) {
  check_fold<float, 1>();
  check_fold<float, 4>();
  check_fold<float, 8>();
  check_fold<float, 16>();
  check_fold<double, 1>();
  check_fold<double, 2>();
  check_fold<double, 4>();
  check_fold<double, 8>();
}
