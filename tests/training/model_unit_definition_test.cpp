// What ATTUNE_MODEL_UNIT defines is tested in model_unit_test.cpp; here, that the header is enough for it.
#include <attune/training/model_unit_definition.hpp>

#include <attune/layers/linear.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace of_model_unit_definition {

struct Number {
  using Target = float;
  static constexpr int kInputs = 1, kTargets = 1, kOutputs = 1;
};

}  // namespace of_model_unit_definition

namespace {

using of_model_unit_definition::Number;
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 1, .d_out = 1}>;
attune::Trainer<Layer, attune::SumSquaredError, attune::Sgd<>> trainer;

}  // namespace

ATTUNE_MODEL_UNIT(Number, trainer);

TEST(ModelUnitDefinition, takes_the_options_of_any_optimizer) {
  using Unit = attune::ModelUnit<Number>;
  Unit::initialize(1);
  const float before = Unit::step({1}, {2}, 0.1f).loss;
  EXPECT_LT(Unit::step({1}, {2}, 0.1f).loss, before);
  EXPECT_EQ(Unit::step({1}, {2}, -1).status, attune::Status::kInvalidLearningRate);
}
