// Trains the model of keyword.cpp without compiling it.
#include "keyword.hpp"

#if defined(EIGEN_WORLD_VERSION) || defined(_GLIBCXX_TYPE_TRAITS) || defined(_GLIBCXX_UTILITY)
#error "attune/training/model_unit.hpp includes Eigen or views of matrices: it is no longer cheap"
#endif

bool keyword_learns() {
  using Model = attune::ModelUnit<Keyword>;
  const float x[6] = {1, -1, 0, 2, 0, 1};
  const int target[1] = {2};
  Model::initialize(1);
  const float before = Model::step(x, target, 0.1f).loss;
  for (int step = 0; step < 20; ++step) (void)Model::step(x, target, 0.1f);
  float logits[3];
  return Model::predict(x, logits) == attune::Status::kOk && logits[2] > logits[0] && logits[2] > logits[1] &&
         Model::step(x, target, 0.1f).loss < before;
}
