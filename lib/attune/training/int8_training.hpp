// Training in integers: forward and backward multiply integers of 8 bits, and the optimizer updates floats.
//
//   attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 32, attune::Int8Training> trainer;
//
// The plan has a copy of the model's weights in 8 bits, a quarter of their RAM, which is quantized once a
// step. Products with weights take it, and products of activations (attention, gradients of weights) quantize
// both sides on the way (kernels/ops/int8_products.hpp). Softmax, norms, activations, gradients and moments
// stay floats, as do sums of fewer than Int8Products::kLeastDepth terms. predict() computes in integers, too.
// parameters() are those of the other plans, so files do not know the plan. A state does: one of another plan
// is kOtherPrecision.
//
// The bits are the same on every target. They are not those of the other plans, and attention that recomputes
// its weights (AttentionShape::keep_weights) has others than attention that keeps them: a block of queries is
// quantized by itself.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/ops/int8_products.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/state.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// Weights in integers, as of the last load().
template <class Model>
class Int8Workspace {
  static_assert(std::is_same_v<typename Model::Scalar, float>,
                "attune::Int8Training: products in integers are those of models in float");

 public:
  static constexpr int kSequences = 1;
  /// How products of activations are computed.
  using Products = kernels::Int8Products;

  static constexpr MemoryReport memory() { return {.parameters = sizeof weights_}; }

  /// What products take.
  [[nodiscard]] const auto& weights() const { return weights_; }
  /// The parameters have changed.
  void invalidate() { valid_ = false; }
  /// Takes parameters that have changed. kNotFinite where one is not finite.
  [[nodiscard]] Status load(const typename Model::Parameters& parameters) {
    if (valid_) return Status::kOk;
    const Status status = quantize(parameters, weights_);
    valid_ = status == Status::kOk;
    return status;
  }

 private:
  SetOf<Model, PackedInt8Weights, Tensor> weights_;
  bool valid_;
};

}  // namespace detail

/// The plan of a Trainer that multiplies integers, one sequence at a time. Of models in float.
struct Int8Training : Streaming {
  /// Of its states.
  static constexpr TrainingPrecision kPrecision = TrainingPrecision::kInt8;
  template <class Model>
  using Workspace = detail::Int8Workspace<Model>;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
