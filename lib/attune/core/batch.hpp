// What a model reads and what its outputs are compared with, for a whole batch: sequence after sequence.
//
// It is matrices, or ids: of tokens, where the first layer looks them up (embedding.hpp), and of classes,
// where the loss says kClassTargets (cross_entropy.hpp). Ids come from outside and can be wrong, so a model
// that reads them answers with a Status.
#pragma once

#include <attune/core/layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

template <class Loss, class Output>
struct TargetOf {
  using type = Output;
};
template <class Loss, class Output>
  requires(Loss::kClassTargets)
struct TargetOf<Loss, Output> {
  using type = std::array<int, std::size_t{Output::rows}>;
};

template <class Model, int count>
using InputsOf = Stacked<typename Model::Input, count>;
template <class Loss, class Output, int count>
using TargetsOf = Stacked<typename TargetOf<Loss, Output>::type, count>;

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
