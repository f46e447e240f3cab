#include <attune/layers/softmax.hpp>

#include "check.hpp"

namespace {

using Layer = attune::LogSoftmax<3, 5>;

}  // namespace

// Gradients: transformer_gradients_test.cpp; against double, in place and with NaN: cross_entropy_test.cpp.

TEST(LogSoftmax, of_large_scores_is_finite) {
  Layer::Input x{};
  x(0, 1) = 1e4f;
  x(1, 2) = -1e4f;
  Layer::Output y;
  Layer::forward(x, y);
  EXPECT_EQ(y(0, 1), 0.0f);
  EXPECT_EQ(y(0, 0), -1e4f);
  EXPECT_NEAR(y(1, 0), -1.3862944, 1e-6);  // four equal scores: −ln 4
}
