// Separate optimizer options for weights, biases and norms, such as no weight decay for biases.
//
//   using Optimizer = attune::ParameterGroups<attune::AdamW>;
//   trainer.step(inputs, targets, {.weights = {.learning_rate = 3e-4f, .weight_decay = 0.1f},
//                                  .biases = {.learning_rate = 3e-4f, .weight_decay = 0}});
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

/// `Base` with options for each TensorKind (core/parameters.hpp): weights (tables included), biases, and the
/// factors of normalizations. It costs three sets of counters and coefficients.
template <class Base>
struct ParameterGroups : OptimizerStep<ParameterGroups<Base>> {
  using Scalar = typename Base::Scalar;
  static constexpr std::uint32_t kFingerprint = fingerprint("ParameterGroups", kFingerprintOf<Base>);
  static_assert(detail::Holds<!detail::HasMasters<Base>>,
                "attune::ParameterGroups: weights in bf16 go around the groups: "
                "StochasticBfloat16<ParameterGroups<...>>");

  /// Each group defaults to the options of the group before it.
  struct Options {
    typename Base::Options weights = {};      // of weights
    typename Base::Options biases = weights;  // of biases
    typename Base::Options norms = biases;    // of norms
  };

  /// The tensors of Base's moments, and counters for each group.
  template <class Parameters>
  struct Moments : Base::template Moments<Parameters> {
    typename Base::Counters of_biases;  // steps of biases
    typename Base::Counters of_norms;   // steps of norms

    void reset() {
      std::memset(static_cast<void*>(this), 0, sizeof *this);  // padding, too
      Base::template Moments<Parameters>::reset();
    }
    /// Sets the start of the stochastic rounding in all groups. The bits depend on a parameter's place in the
    /// set.
    void seed(std::uint64_t bits) requires requires(typename Base::template Moments<Parameters>& of_base) {
      of_base.seed(bits);
    }
    {
      Base::template Moments<Parameters>::seed(bits);
      of_biases.rounding.state = of_norms.rounding.state = bits;
    }
  };

  static constexpr Status check(const Options& options) {
    for (const auto* group : {&options.weights, &options.biases, &options.norms}) {
      if (const Status status = Base::check(*group); status != Status::kOk) return status;
    }
    return Status::kOk;
  }

  // ---- The parts of a step, for callers that update tensor by tensor. ----

  struct Coefficients {
    typename Base::Coefficients of_kind[3];  // in the order of TensorKind
  };
  static constexpr int kMoments = Base::kMoments;
  static constexpr bool kByKind = true;
  static constexpr int kUpdateBlock = detail::kUpdateBlockIn<Base>;
  using MomentPointer = typename detail::MomentPointerOf<Base>::type;

  /// Counts a step. check() must have accepted the options.
  template <class Parameters>
  static Coefficients advance(Moments<Parameters>& moments, const Options& options, Scalar gradient_scale) {
    return {{Base::advance(moments, options.weights, gradient_scale),
             Base::advance(moments.of_biases, options.biases, gradient_scale),
             Base::advance(moments.of_norms, options.norms, gradient_scale)}};
  }
  /// Updates `size` parameters of a tensor of kind `kind` from their gradients and moments.
  static void update(const Coefficients& coefficients, TensorKind kind, int size, auto p, const Scalar* g,
                     auto... moments) {
    Base::update(coefficients.of_kind[static_cast<int>(kind)], kind, size, p, g, moments...);
  }
  /// Calls visitor(path, tensor of each set…, tensor of each moment…).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    Base::for_each_with_moments(visitor, moments, sets...);
  }

 private:
  static_assert(static_cast<int>(TensorKind::kWeight) == 0 && static_cast<int>(TensorKind::kBias) == 1 &&
                static_cast<int>(TensorKind::kNorm) == 2);
};

}  // namespace ATTUNE_NAMESPACE
