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

TEST(Glu, multiplies_the_first_half_by_the_gated_second) {
  using Layer = Glu<GluShape{.rows = 1, .d_model = 2, .activation = Activation::kRelu}>;
  check::Problem<Layer> a(1);
  a.x = {{3, 4, 2, -1}};
  a.dy = {{1, 1}};
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, Layer::Output{{6, 0}}));
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, Layer::Input{{2, 0, 3, 0}}));
}

TEST(Glu, gates_by_either_half) {
  using Layer =
      Glu<GluShape{.rows = 1, .d_model = 2, .activation = Activation::kRelu, .gate = GluGate::kFirst}>;
  check::Problem<Layer> a(1);
  a.x = {{3, -4, 2, -1}};
  a.dy = {{1, 1}};
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, Layer::Output{{6, -0.0f}}));
  a.backward();
  EXPECT_TRUE(check::same_bits(a.dx, Layer::Input{{2, 0, 3, 0}}));
}

TEST(Glu, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Glu<kShape, double>>(-1, 1);
  check::check_layer_gradients<Glu<kSwish, double>>(-1, 1);
  SequenceLength<3> length;
  (void)length.set_length(2);
  check::check_layer_gradients<Pooled<double>>(-1, 1, length);
}

TEST(Glu, has_the_values_of_a_gated_network) {
  using Packed = Sequential<Linear<LinearShape{3, 4, 10}>, Glu<kSwish>, Linear<LinearShape{3, 5, 4}>>;
  using Gated = SwiGlu<FeedForwardShape{.rows = 3, .d_model = 4, .d_ff = 5}>;
  check::Problem<Packed> packed(1);
  check::Problem<Gated> gated(1);
  gated.x = packed.x;
  const auto& in = packed.parameters.layer<0>();
  for (int j = 0; j < 5; ++j) {
    for (int i = 0; i < 4; ++i) {
      gated.parameters.gate.weight(i, j) = in.weight(i, j);
      gated.parameters.up.weight(i, j) = in.weight(i, 5 + j);
    }
    gated.parameters.gate.bias(0, j) = in.bias(0, j);
    gated.parameters.up.bias(0, j) = in.bias(0, 5 + j);
  }
  gated.parameters.down = packed.parameters.layer<2>();
  packed.infer();
  gated.infer();
  for (int i = 0; i < packed.y.size; ++i) EXPECT_NEAR(packed.y.values[i], gated.y.values[i], 1e-6);
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
