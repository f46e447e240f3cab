// Prelu: values, derivatives, one slope or one for each feature, in models with every plan, on a stream, and
// its name in files.
#include <attune/layers/prelu.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "problem.hpp"

namespace {

using namespace check::in_models;
using attune::Prelu;
using attune::PreluShape;

struct OfOneSlope {
  template <class Scalar>
  using Own = Prelu<PreluShape{.rows = kTokens, .d_model = kWidth}, Scalar>;
  static constexpr int kScalars = 1, kVectors = 1;
};
struct OfSlopes {
  template <class Scalar>
  using Own = Prelu<PreluShape{.rows = kTokens, .d_model = kWidth, .slopes = kWidth}, Scalar>;
  static constexpr int kScalars = kWidth, kVectors = kWidth;
};

template <int slopes>
using Small = Prelu<PreluShape{.rows = 2, .d_model = 3, .slopes = slopes}>;

}  // namespace

ATTUNE_TEST_BRIEFLY_IN_MODELS(Prelu, , OfSlopes)
ATTUNE_TEST_BRIEFLY_IN_MODELS(Prelu, of_one_slope_, OfOneSlope)
#if ATTUNE_TEST_QUICK
ATTUNE_TEST_IN_MODEL(Prelu, trains_biases_and_norms, trains_biases_and_norms, OfSlopes)
#endif

TEST(Prelu, scales_numbers_below_zero) {
  using Layer = Small<3>;
  const Layer::Parameters parameters{.weight = {{0.5f, 2, -1}}};
  Layer::Parameters gradients{};
  const Layer::Input x{{-2, -3, -4, 2, 0, -1}};
  const Layer::Output dy{{1, 2, 3, 4, 5, 6}};
  Layer::Output y;
  Layer::Input dx;
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::forward(parameters, x, y, tape, scratch);
  EXPECT_TRUE(check::same_bits(y, Layer::Output{{-1, -6, 4, 2, 0, 1}}));
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  EXPECT_TRUE(check::same_bits(dx, Layer::Input{{0.5f, 4, -3, 4, 10, -6}}));
  EXPECT_TRUE(check::same_bits(gradients.weight, attune::Tensor<float, 1, 3>{{-2, -6, -18}}));
}

TEST(Prelu, of_one_slope_sums_over_all_features) {
  using Layer = Small<1>;
  const Layer::Parameters parameters{.weight = {{0.5f}}};
  Layer::Parameters gradients{};
  const Layer::Input x{{-2, -3, -4, 2, 0, -1}};
  const Layer::Output dy{{1, 2, 3, 4, 5, 6}};
  Layer::Input dx;
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
  EXPECT_TRUE(check::same_bits(dx, Layer::Input{{0.5f, 1, 1.5f, 4, 2.5f, 3}}));
  EXPECT_EQ(gradients.weight(0, 0), -26.0f);
}

TEST(Prelu, has_the_gradients_of_wide_rows) {
  check::check_layer_gradients<Prelu<PreluShape{.rows = 3, .d_model = 21, .slopes = 21}, double>>(-1, 1);
  check::check_layer_gradients<Prelu<PreluShape{.rows = 3, .d_model = 21}, double>>(-1, 1);
}

TEST(Prelu, starts_at_a_quarter) {
  Small<3>::Parameters parameters;
  attune::Rng rng(1);
  parameters.initialize(attune::XavierUniform{}, rng);
  for (const float value : parameters.weight.values) EXPECT_EQ(value, 0.25f);
}

TEST(Prelu, works_in_place) {
  check::Problem<Small<3>>(6).expect_in_place();
  check::Problem<Small<1>>(6).expect_in_place();
}

TEST(Prelu, streams) {
  using Layer = OfSlopes::Own<float>;
  static attune::KeyValueCache<attune::Sequential<Layer>, attune::CacheShape{.window = 1}> cache;
  static decltype(cache)::Scratch<> scratch;
  check::Problem<attune::Sequential<Layer>> a(3);
  a.forward();
  for (int i = 0; i < kTokens; ++i) {
    attune::Tensor<float, 1, kWidth> y;
    EXPECT_EQ(attune::step(a.parameters, attune::view(a.x).template rows_at<1>(i), y, cache, scratch),
              attune::Status::kOk);
    for (int j = 0; j < kWidth; ++j) EXPECT_EQ(y(0, j), a.y(i, j));
  }
}

TEST(Prelu, is_a_module_in_files) {
  check::expect_tensors<attune::PyTorchModule<attune::Sequential<Small<3>>, "act">>({{"act.weight", 3}});
}

TEST(Prelu, has_the_same_bits_everywhere) {
  check::BitHash hash;
  check::Problem<Prelu<PreluShape{.rows = 7, .d_model = 19, .slopes = 19}>> a(9);
  check::Problem<Prelu<PreluShape{.rows = 7, .d_model = 19}>> b(9);
  a.add_bits(hash);
  b.add_bits(hash);
  for (const float value : a.gradients.weight.values) hash.add(value);
  hash.add(b.gradients.weight(0, 0));
  EXPECT_EQ(hash.value(), 0x29B78716u);
}
