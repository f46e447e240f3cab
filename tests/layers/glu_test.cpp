// Glu: values, derivatives, padding, and the values of a gated network.
#include <attune/layers/glu.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr GluShape kShape{.rows = 3, .d_model = 5};
constexpr GluShape kSwish{.rows = 3, .d_model = 5, .activation = Activation::kSilu, .gate = GluGate::kFirst};

template <class Scalar>
using Pooled = Sequential<Glu<kSwish, Scalar>, Pooling<PoolingShape{3, 5}, Scalar>>;

}  // namespace

TEST(Glu, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Glu<kShape, double>>(-1, 1);
  check::check_layer_gradients<Glu<kSwish, double>>(-1, 1);
  SequenceLength<3> length;
  (void)length.set_length(2);
  check::check_layer_gradients<Pooled<double>>(-1, 1, length);
}

TEST(Glu, has_no_gradient_at_padding) {
  check::Problem<Pooled<float>> a(1);
  for (int j = 0; j < 10; ++j) a.x(1, j) = check::kNan<float>;
  KeyPaddingMask<3> padding;
  padding.set_valid({true, false, true});
  a.forward(padding);
  a.backward(padding);
  for (int j = 0; j < 10; ++j) {
    EXPECT_EQ(a.dx(1, j), 0.0f);
    EXPECT_FALSE(check::is_nan(a.dx(0, j)));
  }
}
