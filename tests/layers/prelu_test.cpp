// Prelu: values, derivatives, one slope or one for each feature, in models, and its name in files.
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
ATTUNE_TEST_IN_MODEL(Prelu, trains_biases_and_norms, trains_biases_and_norms, OfSlopes)
ATTUNE_TEST_BRIEFLY_IN_MODELS(Prelu, of_one_slope_, OfOneSlope)

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

TEST(Prelu, is_a_module_in_files) {
  check::expect_tensors<attune::PyTorchModule<attune::Sequential<Small<3>>, "act">>("act.weight[3]");
}
