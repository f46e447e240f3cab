// Training in integers: forward and backward multiply 8-bit integers, and the optimizer updates floats.
//
//   attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 32, attune::Int8Training> trainer;
//
// The plan holds an 8-bit copy of the model's weights, a quarter of their RAM, and quantizes it once per
// step. Products with weights read this copy. Products of activations (attention, gradients of weights)
// quantize both sides during the call (kernels/ops/int8_products.hpp). Softmax, norms, activations, gradients
// and moments stay floats, as do products with factors of LoRA (weights/low_rank.hpp) and short sums: of
// fewer than Int8Products::kMinDepth terms, or kMinDepthOfMany in gradients of weights with many outputs.
// predict() computes in integers, too. parameters() are the same as in other plans, so files are
// interchangeable. States are not: resuming from another plan's state returns kOtherPrecision.
//
// Int8TrainingWith<UpdateInBackward> keeps no gradients: parameters, moments, the 8-bit copy and a few rows.
// It quantizes gradients of outputs again for every eight rows of a weight's gradient.
//
// Every target computes the same bits, but they differ from other plans. Attention that recomputes its
// weights (AttentionShape::keep_weights) has other bits than attention that keeps them, because each block of
// queries is quantized separately.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/ops/int8_products.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/state.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Quantized weights, as of the last load().
template <class Model>
class Int8Executor {
  static_assert(Holds<std::is_same_v<typename Model::Scalar, float>>,
                "attune::Int8Training: integer products need a model in float");

 public:
  static constexpr int kSequences = 1;
  using Products = kernels::Int8Products;

  static constexpr MemoryReport memory() { return {.parameters = sizeof weights_}; }

  [[nodiscard]] const auto& weights(const auto& /*parameters*/) const { return weights_; }
  void invalidate() { valid_ = false; }
  /// Quantizes parameters that have changed.
  Status load(const auto& parameters) {
    if (valid_) return Status::kOk;
    const Status status = quantize(parameters, weights_);
    valid_ = status == Status::kOk;
    return status;
  }

 private:
  SetOf<Model, PackedInt8Weights, Tensor> weights_;
  bool valid_;
};

/// A plan that computes one sequence at a time. Another one is an error.
template <class Plan>
constexpr auto plan_by_sequence() {
  constexpr bool kBySequence = std::is_base_of_v<BySequence, Plan>;
  static_assert(Holds<kBySequence>,
                "attune::Int8TrainingWith, WeightsIn, GradientsIn: the plan inside must compute one sequence "
                "at a time: "
                "BySequence, UpdateInBackward or InSharedBuffers<buffers>");
  return std::conditional_t<kBySequence, Plan, BySequence>{};
}

/// Integers are weights of their own.
template <class Plan, class Model>
constexpr bool check_own_weights() {
  constexpr bool kOwn = !OwnsWeights<typename Plan::template BatchExecutor<Model>>;
  static_assert(
      Holds<kOwn>,
      "attune::Int8TrainingWith: the plan inside has weights of its own; for a place of the integers, "
      "use WeightsIn<weights, Int8Training>");
  return kOwn;
}

}  // namespace detail

/// `Plan` with products in integers, for models in float. Plan computes one sequence at a time: BySequence,
/// UpdateInBackward, or either InSharedBuffers.
template <class Plan>
struct Int8TrainingWith : decltype(detail::plan_by_sequence<Plan>()) {
  /// The precision in its states.
  static constexpr TrainingPrecision kPrecision = TrainingPrecision::kInt8;
  /// The plan for an optimizer.
  template <class Optimizer>
  using With = Int8TrainingWith<detail::PlanWith<decltype(detail::plan_by_sequence<Plan>()), Optimizer>>;
  /// The integers of the weights.
  template <class Model>
  using BatchExecutor =
      std::conditional_t<detail::check_own_weights<Plan, Model>(), detail::Int8Executor<Model>,
                         typename Plan::template BatchExecutor<Model>>;
};
/// The plan that multiplies integers and adds up the gradients of a batch.
using Int8Training = Int8TrainingWith<BySequence>;

}  // namespace ATTUNE_NAMESPACE
