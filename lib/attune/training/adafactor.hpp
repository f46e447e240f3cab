// Adafactor: the adaptive steps of AdamW with 1 % to 10 % of its moments.
#pragma once

#include <cstdint>
#include <cstring>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/adafactor.hpp>
#include <attune/kernels/simd/elementary.hpp>
#include <attune/training/moment_sets.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The second moments of a set, in factored form.
template <class Parameters, class Scalar>
struct FactoredSet {
  Scalar values[kEndOfMoments<Parameters>.factors];

  template <int rows, int cols>
  [[nodiscard]] MomentTensor<kernels::FactoredMoments<Scalar>> at(const MomentPlace& place) {
    return {{values + place.factors, cols == 1 ? 1 : rows, cols == 1 ? rows : cols}};
  }
};

}  // namespace detail

/// The scale of Adafactor's steps.
enum class StepScale {
  kAbsolute = 0,  // α = lr
  kRelative = 1,  // α = max(ε₂, RMS of the tensor) · min(lr, 1/√t), as in the paper and PyTorch
};

/// Adafactor (Shazeer and Stern, 2018, algorithms 4 and 5), without a first moment. A matrix [rows, cols] has
/// rows + cols moments, a vector one per element. With β̂₂ = 1 − t^−decay:
///   R ← β̂₂R + (1 − β̂₂)·row means of (g² + ε₁),  C likewise over columns,  v̂ = R·C/mean(R);
///   u = g/√v̂,  p ← (1 − lr·λ)p − α·u/max(1, RMS(u)/d).
/// Each tensor is updated as a whole. An update in slices therefore has one slice per tensor, and
/// UpdateInBackward has room for the gradients of the largest tensor.
template <StepScale scale = StepScale::kAbsolute, class ScalarType = float>
struct Adafactor : OptimizerStep<Adafactor<scale, ScalarType>> {
  using Scalar = ScalarType;
  /// Whether the step scales with the RMS of its tensor.
  static constexpr bool kRelative = scale == StepScale::kRelative;
  static constexpr std::uint32_t kFingerprint = fingerprint("Adafactor", scale);

  struct Options {
    Scalar learning_rate = Scalar(kRelative ? 1e-2 : 4e-3);
    Scalar beta2_decay = Scalar(0.8);  // β̂₂ = 1 − t^−beta2_decay; in (0, 1]
    Scalar epsilon1 = Scalar(1e-30);   // added to g²
    Scalar epsilon2 = Scalar(1e-3);    // the smallest parameter RMS that a relative step assumes
    Scalar clipping = 1;               // d, the largest RMS of an update
    Scalar weight_decay = 0;           // decoupled
  };

  /// The number of steps so far.
  struct Counters {
    std::uint32_t steps;  // so far
  };
  /// Row and column means of the second moments of all parameters. They are not visited as named tensors.
  template <class Parameters>
  struct Moments : Counters {
    detail::FactoredSet<Parameters, Scalar> second;  // v, factored

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
  };

  static constexpr Status check(const Options& options) {
    if (!detail::is_rate(options.learning_rate)) return Status::kInvalidLearningRate;
    if (!(options.beta2_decay > 0 && options.beta2_decay <= 1)) return Status::kInvalidBeta;
    if (!(options.epsilon1 >= kMinEpsilon && options.epsilon1 <= 1)) return Status::kInvalidEpsilon;
    if (!(options.epsilon2 > 0 && options.epsilon2 <= 1)) return Status::kInvalidEpsilon;
    if (!(options.clipping > 0 && options.clipping <= detail::kLargestRate<Scalar>))
      return Status::kInvalidMaxNorm;
    if (!detail::is_rate(options.weight_decay) || options.learning_rate * options.weight_decay > 1)
      return Status::kInvalidWeightDecay;
    return Status::kOk;
  }

  // ---- The parts of a step, for callers that update tensor by tensor. ----

  using Coefficients = kernels::AdafactorCoefficients<Scalar>;
  using MomentPointer = kernels::FactoredMoments<Scalar>;
  static constexpr int kMoments = 1;
  static constexpr int kUpdateBlock = 0;

  /// Counts a step. check() must have accepted the options. `counters` are Moments or Counters.
  static Coefficients advance(auto& counters, const Options& options, Scalar gradient_scale) {
    return coefficients_of(static_cast<Counters&>(counters), options, gradient_scale);
  }
  /// Updates a whole tensor: all its parameters, from their gradients and moments.
  static void update(const Coefficients& coefficients, TensorKind, int, auto p, const Scalar* g,
                     MomentPointer v) {
    kernels::adafactor_update<kRelative>(p, g, v, coefficients);
  }
  /// Calls visitor(path, tensor of each set…, tensor of v).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    detail::visit_with_moments(visitor, moments.second)(sets...);
  }

 private:
  static constexpr Scalar kMinEpsilon = Scalar(1e-36);  // its square root is a divisor

  [[gnu::noinline]] static Coefficients coefficients_of(Counters& counters, const Options& options,
                                                        Scalar gradient_scale) {
    if (counters.steps + 1 != 0) ++counters.steps;
    const auto steps = static_cast<Scalar>(counters.steps);
    const Scalar intake =  // 1 − β̂₂
        counters.steps == 1 ? Scalar(1)
                            : kernels::exponential(-options.beta2_decay * kernels::logarithm(steps));
    const Scalar rate = kRelative ? detail::smaller(options.learning_rate, 1 / kernels::square_root(steps))
                                  : options.learning_rate;
    return {.beta2 = 1 - intake,
            .one_minus_beta2 = intake,
            .step_size = rate,
            .least_rms = options.epsilon2,
            .epsilon = options.epsilon1,
            .clipping = options.clipping,
            .decay = 1 - options.learning_rate * options.weight_decay,
            .gradient_scale = gradient_scale};
  }
};

}  // namespace ATTUNE_NAMESPACE
