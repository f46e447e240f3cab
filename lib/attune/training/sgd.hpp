// Stochastic gradient descent, with and without momentum.
#pragma once

#include <cstring>

#include <attune/kernels/ops/update.hpp>
#include <attune/training/moment_sets.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

/// The momentum of Sgd.
enum class Momentum {
  kNone = 0,     // b = g
  kClassic = 1,  // p ← p − lr·b
  kNesterov = 2  // p ← p − lr·(g + μb)
};

template <Momentum kind = Momentum::kNone, class ScalarType = float,
          MomentPrecision precision = MomentPrecision::kScalar>
/// Stochastic gradient descent, as torch.optim.SGD:  g ← g + λp,  b ← μb + (1 − dampening)g  (b ← g on the
/// first step), p ← p − lr·b, or with Nesterov p ← p − lr·(g + μb).
struct Sgd : OptimizerStep<Sgd<kind, ScalarType, precision>> {
  using Scalar = ScalarType;
  static constexpr bool kInScalars = precision == MomentPrecision::kScalar;
  static_assert(detail::Holds<(kInScalars || (std::is_same_v<Scalar, float> && kind != Momentum::kNone))>,
                "attune::Sgd: 8- and 16-bit momentum needs float parameters");
  static constexpr std::uint32_t kFingerprint =
      fingerprint("Sgd", kind, detail::OnlyIf{!kInScalars}, precision);

  struct Options {
    Scalar learning_rate = Scalar(1e-2);
    Scalar momentum = kind == Momentum::kNone ? Scalar(0) : Scalar(0.9);
    Scalar dampening = 0;  // of the momentum, in [0, 1]
    Scalar weight_decay = 0;
  };

  /// Whether the first step is done, and the state of the rounding.
  struct Counters {
    bool started;
    [[no_unique_address]] detail::RoundingOf<precision> rounding;
  };
  /// b of every parameter, and the counters; no b without momentum. In 8 and 16 bits, b is not visited as
  /// named tensors.
  template <class Parameters, bool kHasMomentum = kind != Momentum::kNone, bool kNamed = kInScalars>
  struct Moments : detail::NotRounded {
    Parameters velocity;
    bool started;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_velocity{"velocity", parent};
      Parameters::visit(visitor, &of_velocity, sets.velocity...);
    }
  };
  template <class Parameters>
  struct Moments<Parameters, true, false> : Counters {
    typename detail::MomentsIn<Parameters, Scalar, precision>::Set velocity;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    void seed(std::uint64_t bits) requires(detail::is_random(precision)) { this->rounding.state = bits; }
  };
  template <class Parameters>
  struct Moments<Parameters, false, true> : NoParameters, detail::NotRounded {
    void reset() {}
  };

  static constexpr Status check(const Options& options) {
    if (!detail::is_rate(options.learning_rate)) return Status::kInvalidLearningRate;
    if (!detail::is_rate(options.weight_decay) || options.learning_rate * options.weight_decay > 1)
      return Status::kInvalidWeightDecay;
    if (!(options.momentum >= 0 && options.momentum <= 1)) return Status::kInvalidMomentum;
    if (!(options.dampening >= 0 && options.dampening <= 1)) return Status::kInvalidMomentum;
    if (kind == Momentum::kNone && options.momentum != 0) return Status::kInvalidMomentum;
    if (kind == Momentum::kNesterov && (options.momentum == 0 || options.dampening != 0))
      return Status::kInvalidMomentum;
    return Status::kOk;
  }

  // ---- The parts of a step, for callers that update tensor by tensor. ----

  using Coefficients = detail::CoefficientsIn<kernels::SgdCoefficients<Scalar>, precision>;
  using MomentPointer = detail::MomentPointerIn<Scalar, precision>;
  static constexpr int kUpdateBlock = detail::is_int8(precision) ? kernels::kMomentBlock : 1;
  static constexpr int kMoments = kind == Momentum::kNone ? 0 : 1;

  /// Counts a step. check() must have accepted the options. `counters` are Moments or Counters.
  static Coefficients advance([[maybe_unused]] auto& counters, const Options& options,
                              Scalar gradient_scale) {
    kernels::SgdCoefficients<Scalar> coefficients{.learning_rate = options.learning_rate,
                                                  .momentum = options.momentum,
                                                  .intake = 1 - options.dampening,
                                                  .l2 = options.weight_decay,
                                                  .gradient_scale = gradient_scale};
    if constexpr (kind != Momentum::kNone) {
      if (!counters.started) coefficients.intake = 1;
      counters.started = true;
    }
    return {coefficients, counters.rounding.next()};
  }
  /// Updates `size` parameters from their gradients and velocities.
  static void update(const Coefficients& coefficients, TensorKind, int size, Scalar* p, const Scalar* g,
                     MomentPointer b = {}) {
    if constexpr (kInScalars) {
      kernels::sgd_update<kind != Momentum::kNone, kind == Momentum::kNesterov>(size, p, g, b, coefficients);
    } else {
      kernels::sgd_update<kind == Momentum::kNesterov>(size, p, g, b, coefficients, coefficients.rounding);
    }
  }
  /// Calls visitor(path, tensor of each set…, tensor of b if it exists).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    if constexpr (kind == Momentum::kNone) {
      for_each_tensor(visitor, sets...);
    } else {
      detail::visit_with_moments(visitor, moments.velocity)(sets...);
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
