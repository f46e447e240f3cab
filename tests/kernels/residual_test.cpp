// Sums in place, of every number of scalars.
#include <attune/kernels/ops/residual.hpp>

#include <attune/core/tensor.hpp>

#include "check.hpp"

namespace {

namespace kernels = attune::kernels;
using Row = attune::Tensor<float, 1, 40>;

}  // namespace

TEST(Residual, adds_exactly_its_elements) {
  static Row x, before, y;
  attune::Rng rng(5);
  check::fill(x, rng);
  check::fill(before, rng);
  for (int size = 0; size < Row::cols; ++size) {
    y = before;
    kernels::add_to(size, x.data(), y.data());
    for (int i = 0; i < Row::cols; ++i) {
      EXPECT_TRUE(check::same_bits(y(0, i), i < size ? before(0, i) + x(0, i) : before(0, i)))
          << size << ' ' << i;
    }
  }
}

TEST(Residual, moves_exactly_its_elements) {
  static Row x, from, before, y;
  attune::Rng rng(6);
  check::fill(from, rng);
  check::fill(before, rng);
  for (int size = 0; size < Row::cols; ++size) {
    x = from;
    y = before;
    kernels::move_to(size, x.data(), y.data());
    for (int i = 0; i < Row::cols; ++i) {
      EXPECT_TRUE(check::same_bits(y(0, i), i < size ? before(0, i) + from(0, i) : before(0, i)))
          << size << ' ' << i;
      EXPECT_TRUE(check::same_bits(x(0, i), i < size ? 0.0f : from(0, i))) << size << ' ' << i;
    }
  }
}
