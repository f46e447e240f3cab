// Identity: x as it is, in place and not, without padding.
#include <attune/layers/identity.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 5, kWidth = 3;
using Layer = Identity<kTokens, kWidth>;

}  // namespace

TEST(Identity, copies_x_and_dy) {
  static_assert(std::is_empty_v<Layer::Tape> && !detail::ReadsInput<Layer, Layer::Parameters>);
  check::Problem<Layer> a(1);
  a.infer();
  EXPECT_TRUE(check::same_bits(a.y, a.x));
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, a.x));
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, a.dy));
}

TEST(Identity, computes_only_the_valid_tokens) {
  check::Problem<Sequential<Layer, Pooling<PoolingShape{kTokens, kWidth}>>> a(1);
  SequenceLength<kTokens> length;
  ASSERT_EQ(length.set_length(1), Status::kOk);
  a.forward(length);
  for (int j = 0; j < kWidth; ++j) EXPECT_EQ(float(a.y(0, j)), float(a.x(0, j)));
  a.backward(length);
  for (int i = 0; i < a.x.size; ++i) EXPECT_EQ(a.dx.values[i], i < kWidth ? a.dy.values[i] : 0);
}

TEST(Identity, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Identity<kTokens, kWidth, double>>(-1, 1);
}
