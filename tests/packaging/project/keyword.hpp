// A model as the rest of a product sees it.
#pragma once

#include <attune/training/model_unit.hpp>

struct Keyword {
  using Target = int;
  static constexpr int kInputs = 6, kTargets = 1, kOutputs = 3;
};
extern template class attune::ModelUnit<Keyword>;
