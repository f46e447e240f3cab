// expect: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns
// and an array without a shape has rows * cols numbers
#include <attune/layers/linear.hpp>
#include <attune/training/model_unit_definition.hpp>
#include <attune/training/trainer.hpp>

struct Keyword {
  using Target = float;
  static constexpr int kInputs = 3, kTargets = 2, kOutputs = 2;
};
static attune::Trainer<attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>> trainer;
ATTUNE_MODEL_UNIT(Keyword, trainer);
