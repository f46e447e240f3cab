// What a model reads and what its outputs are compared with, for a whole batch: sequence after sequence.
//
// It is matrices, or ids: of tokens, where the first layer looks them up (embedding.hpp), and of classes,
// where the loss says kClassTargets (cross_entropy.hpp). Ids come from outside and can be wrong, so a model
// that reads them answers with a Status.
#pragma once

#include <array>

#include <attune/core/ids.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// `count` matrices of one shape, one below the other.
template <class Matrix, int count>
struct Stacked {
  using Storage = Tensor<typename Matrix::Scalar, count * Matrix::rows, Matrix::cols>;
  using View = MatrixView<const typename Matrix::Scalar, count * Matrix::rows, Matrix::cols>;
  using One = MatrixView<const typename Matrix::Scalar, Matrix::rows, Matrix::cols>;
  static One at(View view, int index) { return view.template rows_at<Matrix::rows>(index * Matrix::rows); }
};
/// `count` times as many ids as the array has.
template <std::size_t size, int count>
struct Stacked<std::array<int, size>, count> {
  using Storage = std::array<int, count * size>;
  using View = Ids<count* static_cast<int>(size)>;
  using One = Ids<static_cast<int>(size)>;
  static One at(View view, int index) { return One(view.data() + static_cast<std::size_t>(index) * size); }
};

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

/// Whether a layer's input are ids.
template <class Layer>
inline constexpr bool kTakesIds = requires {
  requires std::is_same_v<typename Layer::Input::value_type, int>;
};

/// What forward of a layer answers: whether it took its ids; nothing where there are none.
template <class Layer>
using Outcome = std::conditional_t<kTakesIds<Layer>, Status, void>;

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
