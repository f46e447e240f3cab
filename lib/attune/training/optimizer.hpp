// What an optimiser is; Adam with decoupled (AdamW) or coupled weight decay, and SGD.
//
// One step reads gradients and changes parameters and moments; the caller owns all of them. An optimiser is a
// type without state:
//
//   struct MyOptimizer {
//     using Scalar = float;
//     struct Options { Scalar learning_rate = …; };
//     template <class Parameters>
//     struct Moments { void reset(); };         // of every parameter, and what else counts steps; zero at
//     the
//                                               // start
//     static constexpr int kMoments = …;        // how many tensors of moments a parameter has
//     struct Coefficients { … };                // what one step multiplies every element by
//
//     static Status check(const Options&);      // refuses what could make parameters infinite
//     // Counts a step, with options that check() has passed. Gradients times gradient_scale are applied.
//     static Coefficients advance(Moments<Parameters>&, const Options&, Scalar gradient_scale);
//     // `size` parameters of a tensor, their gradients, and kMoments times their moments.
//     static void update(const Coefficients&, TensorKind, int size, Scalar* p, const Scalar* g, Scalar*… m);
//     // visitor(path, tensor of each set…, tensor of each moment…), tensor by tensor.
//     static void for_each_with_moments(visitor, Moments<Parameters>&, sets&…);
//   };
//
// One whose update depends on the kind of a tensor says kByKind = true (parameter_groups.hpp). What Moments
// have beside tensors is also there alone, as Counters, for who wraps an optimiser. Where data() of a tensor
// of moments is something else than a Scalar*, MomentPointer is its type. Where Moments have seed(bits),
// restarts call it.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/kernels/update.hpp>
#include <attune/training/bfloat16_set.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// What points to the moments of an optimiser.
template <class O>
struct MomentPointerOf {
  using type = typename O::Scalar*;
};
template <class O>
  requires requires { typename O::MomentPointer; }
struct MomentPointerOf<O> {
  using type = typename O::MomentPointer;
};

}  // namespace detail

/// An optimiser of such parameters: see the top of this file.
template <class O, class Parameters>
concept Optimizer = requires(const typename O::Options& options,
                             typename O::template Moments<Parameters>& moments,
                             const typename O::Coefficients& coefficients, typename O::Scalar scale,
                             Parameters& parameters) {
  { O::kMoments } -> std::convertible_to<int>;
  { O::check(options) } -> std::same_as<Status>;
  { O::advance(moments, options, scale) } -> std::same_as<typename O::Coefficients>;
  moments.reset();
  O::for_each_with_moments([](const TensorPath&, auto&...) {}, moments, parameters);
}
&&requires(const typename O::Coefficients& c, typename O::Scalar* p, const typename O::Scalar* g,
           typename detail::MomentPointerOf<O>::type m) {
  requires(O::kMoments != 0 || requires { O::update(c, TensorKind::kWeight, 1, p, g); });
  requires(O::kMoments != 1 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m); });
  requires(O::kMoments != 2 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m, m); });
};

namespace detail {

/// Whether O is an optimiser; where it is none, one error says what is missing.
template <class O, class Parameters>
constexpr bool check_optimizer() {
  if constexpr (!requires {
                  typename O::Scalar;
                  typename O::Options;
                  typename O::Coefficients;
                  typename O::template Moments<Parameters>;
                }) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: the type does not name Scalar, Options, Coefficients and "
                  "Moments<Parameters>; training/optimizer.hpp shows what an optimiser has");
  } else if constexpr (!requires(const typename O::Options& options) {
                         { O::check(options) } -> std::same_as<Status>;
                       }) {
    static_assert(sizeof(O) == 0, "attune::Optimizer: there is no check(options) that answers a Status");
  } else if constexpr (!requires(typename O::template Moments<Parameters> & moments,
                                 const typename O::Options& options, typename O::Scalar scale) {
                         { O::advance(moments, options, scale) } -> std::same_as<typename O::Coefficients>;
                       }) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: there is no advance(moments, options, gradient_scale) that answers "
                  "Coefficients");
  } else if constexpr (!Optimizer<O, Parameters>) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: there is no kMoments, moments.reset(), for_each_with_moments(visitor, "
                  "moments, sets...), or update(coefficients, kind, size, p, g, moments...) with kMoments "
                  "pointers at the end");
  }
  return Optimizer<O, Parameters>;
}
template <class O, class Parameters>
concept CheckedOptimizer = check_optimizer<O, Parameters>();

/// Gradients above it are not squared: 2⁶³ in float, half of what may be.
template <class Scalar>
inline constexpr Scalar kLargestGradient = [] {
  Scalar bound = 1;
  for (int i = 1; i < std::numeric_limits<Scalar>::max_exponent / 2; ++i) bound *= 2;
  return bound;
}();
/// A larger learning rate, times such a gradient, could come near what parameters cannot hold: 2⁴⁰ in float.
/// The same bounds weight decay.
template <class Scalar>
inline constexpr Scalar kLargestRate = kLargestGradient<Scalar>* std::numeric_limits<Scalar>::epsilon();

}  // namespace detail

/// One step of an optimiser. `gradients` times `gradient_scale` is what is applied: finite, and no larger
/// than can be squared (2⁶³ in float), which is the caller's to see to. Nothing changes unless the result is
/// kOk.
template <class Optimizer, class Parameters>
Status optimizer_step(Parameters& parameters, const Parameters& gradients,
                      typename Optimizer::template Moments<Parameters>& moments,
                      const typename Optimizer::Options& options,
                      typename Optimizer::Scalar gradient_scale = 1) {
  if (const Status status = Optimizer::check(options); status != Status::kOk) return status;
  const typename Optimizer::Coefficients coefficients = Optimizer::advance(moments, options, gradient_scale);
  Optimizer::for_each_with_moments(
      [&coefficients](const TensorPath& path, auto& p, const auto& g, auto&... moment) {
        Optimizer::update(coefficients, path.kind, p.size, p.data(), g.data(), moment.data()...);
      },
      moments, parameters, gradients);
  return Status::kOk;
}

/// A decay rate β in [0, 1), made from a double literal: β and 1 − β are each rounded once from it (1 −
/// 0.999f would be 5e-5 off), and 2⁶⁴β is kept so that βᵗ is exact to 2⁻⁶⁴ a step without double arithmetic
/// on the device.
template <class Scalar>
struct DecayRate {
  Scalar value;
  Scalar complement;
  std::uint64_t fixed_point;

  constexpr DecayRate(double beta)  // NOLINT: {.beta1 = 0.9} is the spelling
      : value(static_cast<Scalar>(beta)),
        complement(static_cast<Scalar>(1.0 - beta)),
        fixed_point(beta >= 0.0 && beta < 1.0 ? static_cast<std::uint64_t>(beta * 18446744073709551616.0)
                                              : 0) {}

  [[nodiscard]] constexpr bool valid() const { return value >= 0 && complement > 0; }
};

namespace detail {

/// 1 − βᵗ over the steps so far, as a fraction of 2⁶⁴; zero-initialised, so that it starts in .bss.
struct BiasCorrection {
  std::uint64_t complement;

  // βᵗ ← βᵗ·β: the upper half of a 64 × 64 bit product.
  [[gnu::noinline]] constexpr void advance(std::uint64_t beta) {
    const std::uint64_t power = ~complement;
    const std::uint64_t a = power >> 32, b = power & 0xFFFFFFFFu, c = beta >> 32, d = beta & 0xFFFFFFFFu;
    const std::uint64_t middle = ((b * d) >> 32) + ((a * d) & 0xFFFFFFFFu) + b * c;
    complement = ~(a * c + ((a * d) >> 32) + (middle >> 32));
  }
  // Rounded to nearest. A float is made of the 32 leading bits, the last of them standing for all that
  // follow, since a conversion from 64 bits is a library call on a 32-bit processor.
  template <class Scalar>
  [[nodiscard, gnu::noinline]] constexpr Scalar value() const {
    if constexpr (std::is_same_v<Scalar, float>) {
      if (complement == 0) return 0;
      const int zeros = std::countl_zero(complement);
      const std::uint64_t shifted = complement << zeros;
      const auto leading =
          static_cast<std::uint32_t>(shifted >> 32) | static_cast<std::uint32_t>((shifted << 32) != 0);
      const auto scale = std::bit_cast<float>(static_cast<std::uint32_t>(127 - 32 - zeros) << 23);
      return static_cast<float>(leading) * scale;
    } else {
      return static_cast<Scalar>(complement) * Scalar(1.0f / 18446744073709551616.0f);
    }
  }
};

template <class Scalar>
[[nodiscard]] constexpr bool finite(Scalar x) {
  return x - x == 0;
}
/// Of a learning rate or a weight decay; false for NaN.
template <class Scalar>
[[nodiscard]] constexpr bool is_rate(Scalar x) {
  return x >= 0 && x <= kLargestRate<Scalar>;
}

}  // namespace detail

enum class WeightDecay {
  kDecoupled,  // p ← (1 − lr·λ)p − …     Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019
  kCoupled,  // g ← g + λp              L2 in the loss
};

enum class EpsilonPlacement {
  kOutsideRoot,           // √v̂ + ε, after bias correction: PyTorch
  kInsideRoot,            // √(v̂ + ε)
  kBeforeBiasCorrection,  // √v + ε, the efficient form of the paper's section 2: TensorFlow, ONNX
};

struct AdamVariant {
  WeightDecay weight_decay = WeightDecay::kDecoupled;
  EpsilonPlacement epsilon = EpsilonPlacement::kOutsideRoot;
  MomentPrecision moments = MomentPrecision::kScalar;
};

/// Adam (Kingma and Ba, 2015, algorithm 1), with m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ):  p ← p − lr·m̂/(√v̂ + ε).
template <AdamVariant variant = AdamVariant{}, class ScalarType = float>
struct Adam {
  using Scalar = ScalarType;
  static constexpr bool kRounds = variant.moments == MomentPrecision::kBfloat16;
  static_assert(!kRounds || std::is_same_v<Scalar, float>,
                "attune::Adam: moments in 16 bits are those of float parameters");
  static constexpr std::uint32_t kFingerprint =
      kRounds ? fingerprint("Adam", variant.weight_decay, variant.epsilon, variant.moments)
              : fingerprint("Adam", variant.weight_decay, variant.epsilon);

  struct Options {
    Scalar learning_rate = Scalar(1e-3);
    DecayRate<Scalar> beta1 = 0.9;
    DecayRate<Scalar> beta2 = 0.999;
    Scalar epsilon = Scalar(1e-8);
    Scalar weight_decay = Scalar(0.01);
  };

  /// 1 − βᵗ, and where rounding stands. All zero at the start.
  struct Counters {
    detail::BiasCorrection beta1_correction;
    detail::BiasCorrection beta2_correction;
    [[no_unique_address]] std::conditional_t<kRounds, detail::RoundingKeys, detail::NoRoundingKeys> rounding;
  };
  /// m and v of every parameter beside. All zero at the start. In 16 bits they have no tensors by name.
  template <class Parameters, bool kInScalars = !kRounds>
  struct Moments {
    Parameters first;
    Parameters second;
    detail::BiasCorrection beta1_correction;
    detail::BiasCorrection beta2_correction;
    [[no_unique_address]] detail::NoRoundingKeys rounding;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_first{"first", parent}, of_second{"second", parent};
      Parameters::visit(visitor, &of_first, sets.first...);
      Parameters::visit(visitor, &of_second, sets.second...);
    }
  };
  template <class Parameters>
  struct Moments<Parameters, false> : Counters {
    detail::Bfloat16Set<Parameters> first;
    detail::Bfloat16Set<Parameters> second;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    /// Where the random bits of rounding start: a training from another seed rounds otherwise.
    void seed(std::uint64_t bits) { this->rounding.state = bits; }
  };

  [[nodiscard]] static constexpr Status check(const Options& options) {
    if (!detail::is_rate(options.learning_rate)) return Status::kInvalidLearningRate;
    if (!options.beta1.valid() || !options.beta2.valid()) return Status::kInvalidBeta;
    if (!detail::finite(options.epsilon) || !(options.epsilon > 0)) return Status::kInvalidEpsilon;
    if (!detail::is_rate(options.weight_decay) || options.learning_rate * options.weight_decay > 1)
      return Status::kInvalidWeightDecay;
    return Status::kOk;
  }

  /// One step: see optimizer_step.
  template <class Parameters>
  static Status step(Parameters& parameters, const Parameters& gradients, Moments<Parameters>& moments,
                     const Options& options, Scalar gradient_scale = 1) {
    return optimizer_step<Adam>(parameters, gradients, moments, options, gradient_scale);
  }

  // ---- The parts of a step, for what updates tensor by tensor. ----

  struct RoundingCoefficients : kernels::AdamCoefficients<Scalar> {
    kernels::PositionBits bits;
  };
  using Coefficients = std::conditional_t<kRounds, RoundingCoefficients, kernels::AdamCoefficients<Scalar>>;
  using MomentPointer = std::conditional_t<kRounds, kernels::Bfloat16Moments, Scalar*>;
  static constexpr int kMoments = 2;

  /// Counts a step, with options that check() has passed. `counters` are Moments or Counters.
  template <class Counting>
  [[gnu::noinline]] static Coefficients advance(Counting& counters, const Options& options,
                                                Scalar gradient_scale) {
    counters.beta1_correction.advance(options.beta1.fixed_point);
    counters.beta2_correction.advance(options.beta2.fixed_point);
    const Scalar correction1 = counters.beta1_correction.template value<Scalar>();
    const Scalar correction2 = counters.beta2_correction.template value<Scalar>();
    const Scalar root2 = kernels::square_root(correction2);
    const kernels::AdamCoefficients<Scalar> coefficients{
        .beta1 = options.beta1.value,
        .one_minus_beta1 = options.beta1.complement,
        .beta2 = options.beta2.value,
        .one_minus_beta2 = options.beta2.complement,
        .step_size = options.learning_rate / correction1,
        .second_scale = kInside ? 1 / correction2 : 1 / root2,
        .epsilon = variant.epsilon == EpsilonPlacement::kBeforeBiasCorrection ? options.epsilon / root2
                                                                              : options.epsilon,
        .decay = 1 - options.learning_rate * options.weight_decay,
        .l2 = options.weight_decay,
        .gradient_scale = gradient_scale};
    if constexpr (kRounds) {
      return {coefficients, counters.rounding.next()};
    } else {
      return coefficients;
    }
  }
  /// `size` parameters, their gradients and moments.
  static void update(const Coefficients& coefficients, TensorKind, int size, Scalar* p, const Scalar* g,
                     MomentPointer m, MomentPointer v) {
    if constexpr (kRounds) {
      kernels::adam_update<kInside, kCoupled>(size, p, g, m, v, coefficients, coefficients.bits);
    } else {
      kernels::adam_update<kInside, kCoupled>(size, p, g, m, v, coefficients);
    }
  }
  /// visitor(path, tensor of each set…, tensor of m, tensor of v).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    if constexpr (kRounds) {
      detail::for_each_with_bfloat16(visitor, std::tie(sets...), moments.first, moments.second);
    } else {
      for_each_tensor(visitor, sets..., moments.first, moments.second);
    }
  }

 private:
  static constexpr bool kInside = variant.epsilon == EpsilonPlacement::kInsideRoot;
  static constexpr bool kCoupled = variant.weight_decay == WeightDecay::kCoupled;
};

using AdamW = Adam<>;

/// Stochastic gradient descent, as torch.optim.SGD:  g ← g + λp,  b ← μb + (1 − dampening)g  (b ← g on the
/// first step), p ← p − lr·b, or with Nesterov p ← p − lr·(g + μb).
enum class Momentum { kNone, kClassic, kNesterov };

template <Momentum kind = Momentum::kNone, class ScalarType = float,
          MomentPrecision precision = MomentPrecision::kScalar>
struct Sgd {
  using Scalar = ScalarType;
  static constexpr bool kRounds = precision == MomentPrecision::kBfloat16;
  static_assert(!kRounds || (std::is_same_v<Scalar, float> && kind != Momentum::kNone),
                "attune::Sgd: what is kept in 16 bits is the momentum of float parameters");
  static constexpr std::uint32_t kFingerprint =
      kRounds ? fingerprint("Sgd", kind, precision) : fingerprint("Sgd", kind);

  struct Options {
    Scalar learning_rate = Scalar(1e-2);
    Scalar momentum = kind == Momentum::kNone ? Scalar(0) : Scalar(0.9);
    Scalar dampening = 0;
    Scalar weight_decay = 0;
  };

  /// Whether the first step is over, and where rounding stands.
  struct Counters {
    bool started;
    [[no_unique_address]] std::conditional_t<kRounds, detail::RoundingKeys, detail::NoRoundingKeys> rounding;
  };
  /// b of every parameter beside; nothing without momentum. In 16 bits it has no tensors by name.
  template <class Parameters, bool kHasMomentum = kind != Momentum::kNone, bool kInScalars = !kRounds>
  struct Moments {
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
    detail::Bfloat16Set<Parameters> velocity;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    void seed(std::uint64_t bits) { this->rounding.state = bits; }
  };
  template <class Parameters>
  struct Moments<Parameters, false, true> : NoParameters {
    void reset() {}
  };

  [[nodiscard]] static constexpr Status check(const Options& options) {
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

  /// One step: see optimizer_step.
  template <class Parameters>
  static Status step(Parameters& parameters, const Parameters& gradients, Moments<Parameters>& moments,
                     const Options& options, Scalar gradient_scale = 1) {
    return optimizer_step<Sgd>(parameters, gradients, moments, options, gradient_scale);
  }

  // ---- The parts of a step, for what updates tensor by tensor. ----

  struct RoundingCoefficients : kernels::SgdCoefficients<Scalar> {
    kernels::PositionBits bits;
  };
  using Coefficients = std::conditional_t<kRounds, RoundingCoefficients, kernels::SgdCoefficients<Scalar>>;
  using MomentPointer = std::conditional_t<kRounds, kernels::Bfloat16Moments, Scalar*>;
  static constexpr int kMoments = kind == Momentum::kNone ? 0 : 1;

  /// Counts a step, with options that check() has passed. `counters` are Moments or Counters.
  template <class Counting>
  static Coefficients advance([[maybe_unused]] Counting& counters, const Options& options,
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
    if constexpr (kRounds) {
      return {coefficients, counters.rounding.next()};
    } else {
      return coefficients;
    }
  }
  /// `size` parameters, their gradients and velocities.
  static void update(const Coefficients& coefficients, TensorKind, int size, Scalar* p, const Scalar* g,
                     MomentPointer b = {}) {
    if constexpr (kRounds) {
      kernels::sgd_update<kind == Momentum::kNesterov>(size, p, g, b, coefficients, coefficients.bits);
    } else {
      kernels::sgd_update<kind != Momentum::kNone, kind == Momentum::kNesterov>(size, p, g, b, coefficients);
    }
  }
  /// visitor(path, tensor of each set…, and of b if there is one).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    if constexpr (kind == Momentum::kNone) {
      for_each_tensor(visitor, sets...);
    } else if constexpr (kRounds) {
      detail::for_each_with_bfloat16(visitor, std::tie(sets...), moments.velocity);
    } else {
      for_each_tensor(visitor, sets..., moments.velocity);
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
