// Adam with decoupled (AdamW) or coupled weight decay, and its variants.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <attune/kernels/ops/update.hpp>
#include <attune/training/moment_sets.hpp>
#include <attune/training/optimizer.hpp>

namespace ATTUNE_NAMESPACE {

/// A decay rate β in [0, 1), made from a double literal. Both β and 1 − β are rounded once from the double;
/// computing 1 − 0.999f would be 5e-5 off. 2⁶⁴β is stored as well, so βᵗ is exact to 2⁻⁶⁴ per step, without
/// double arithmetic on the device.
template <class Scalar>
struct DecayRate {
  Scalar value;               // β
  Scalar complement;          // 1 − β
  std::uint64_t fixed_point;  // 2⁶⁴β

  /// Converts a double, so that 1 − β is rounded from the written value.
  constexpr DecayRate(double beta)  // NOLINT: {.beta1 = 0.9} is the spelling
      : value(static_cast<Scalar>(beta)),
        complement(static_cast<Scalar>(1.0 - beta)),
        fixed_point(beta >= 0.0 && beta < 1.0 ? static_cast<std::uint64_t>(beta * 18446744073709551616.0)
                                              : 0) {}

  /// Whether β is in [0, 1).
  [[nodiscard]] constexpr bool valid() const { return value >= 0 && complement > 0; }
};

namespace detail {

/// 1 − βᵗ over the steps so far, as a fraction of 2⁶⁴. Starts at zero, so it can live in .bss.
struct BiasCorrection {
  std::uint64_t complement;

  // βᵗ ← βᵗ·β: the upper half of a 64 × 64-bit product.
  [[gnu::noinline]] constexpr void advance(std::uint64_t beta) {
    const std::uint64_t power = ~complement;
    const std::uint64_t a = power >> 32, b = power & 0xFFFFFFFFu, c = beta >> 32, d = beta & 0xFFFFFFFFu;
    const std::uint64_t middle = ((b * d) >> 32) + ((a * d) & 0xFFFFFFFFu) + b * c;
    complement = ~(a * c + ((a * d) >> 32) + (middle >> 32));
  }
  // Rounds to nearest. A float comes from the 32 leading bits, and the last of them stands for all lower
  // bits: on a 32-bit processor, a conversion from 64 bits is a library call.
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

}  // namespace detail

/// How weight decay λ applies.
enum class WeightDecay {
  kDecoupled =
      0,  // p ← (1 − lr·λ)p − …     Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2019
  kCoupled = 1,  // g ← g + λp              L2 regularization in the loss
};

/// Where ε is added.
enum class EpsilonPlacement {
  kOutsideRoot = 0,           // √v̂ + ε, after bias correction: PyTorch
  kInsideRoot = 1,            // √(v̂ + ε)
  kBeforeBiasCorrection = 2,  // √v + ε, the efficient form of the paper's section 2: TensorFlow, ONNX
};

/// Whether Adam keeps a moving average of gradients.
enum class FirstMoment {
  kKept = 0,  // m, with β₁
  kNone = 1,  // m = g, β₁ = 0: RMSProp with bias correction and weight decay, with half the moments
};

/// The variant of Adam.
struct AdamVariant {
  WeightDecay weight_decay = WeightDecay::kDecoupled;
  EpsilonPlacement epsilon = EpsilonPlacement::kOutsideRoot;
  MomentPrecision moments = MomentPrecision::kScalar;  // how moments are stored
  FirstMoment first_moment = FirstMoment::kKept;       // kNone: no average of gradients
};

/// Adam (Kingma and Ba, 2015, algorithm 1), with m̂ = m/(1 − β₁ᵗ), v̂ = v/(1 − β₂ᵗ):
///   p ← p − lr·m̂/(√v̂ + ε)
template <AdamVariant variant = AdamVariant{}, class ScalarType = float>
struct Adam : OptimizerStep<Adam<variant, ScalarType>> {
  using Scalar = ScalarType;
  /// The precision of the moments.
  static constexpr MomentPrecision kPrecision = variant.moments;
  static constexpr bool kInScalars = kPrecision == MomentPrecision::kScalar;
  /// Whether m exists.
  static constexpr bool kHasFirst = variant.first_moment == FirstMoment::kKept;
  static_assert(detail::Holds<(kInScalars || std::is_same_v<Scalar, float>)>,
                "attune::Adam: 8- and 16-bit moments need float parameters");
  static_assert(detail::Holds<(kHasFirst || kPrecision != MomentPrecision::kBfloat16)>,
                "attune::Adam: without a first moment, the second is kept in scalars or in 8 bits");
  static constexpr std::uint32_t kFingerprint = [] {
    const std::uint32_t adam =
        fingerprint("Adam", variant.weight_decay, variant.epsilon, detail::OnlyIf{!kInScalars}, kPrecision);
    return kHasFirst ? adam : fingerprint(adam, variant.first_moment);
  }();

  struct Options {
    Scalar learning_rate = Scalar(1e-3);
    DecayRate<Scalar> beta1 = kHasFirst ? 0.9 : 0.0;
    DecayRate<Scalar> beta2 = 0.999;
    Scalar epsilon = Scalar(1e-8);
    Scalar weight_decay = Scalar(0.01);
  };

  /// 1 − βᵗ, and the state of the rounding. All zero at the start.
  struct Counters {
    detail::BiasCorrection beta1_correction;  // 1 − β₁ᵗ
    detail::BiasCorrection beta2_correction;  // 1 − β₂ᵗ
    [[no_unique_address]] detail::RoundingOf<kPrecision> rounding;
  };
  /// m and v of every parameter, and the counters. All zero at the start. Moments in 8 and 16 bits are not
  /// visited as named tensors.
  template <class Parameters, bool kNamed = kInScalars>
  struct Moments {
    [[no_unique_address]] std::conditional_t<kHasFirst, Parameters, NoParameters> first;  // m
    Parameters second;                                                                    // v
    detail::BiasCorrection beta1_correction;                                              // 1 − β₁ᵗ
    detail::BiasCorrection beta2_correction;                                              // 1 − β₂ᵗ
    [[no_unique_address]] detail::NoRoundingKeys rounding;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_first{"first", parent}, of_second{"second", parent};
      decltype(first)::visit(visitor, &of_first, sets.first...);
      Parameters::visit(visitor, &of_second, sets.second...);
    }
  };
  template <class Parameters>
  struct Moments<Parameters, false> : Counters {
    using Set = typename detail::MomentsIn<Parameters, Scalar, kPrecision>::Set;
    [[no_unique_address]] std::conditional_t<kHasFirst, Set, NoParameters> first;
    Set second;

    void reset() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
    /// Sets the start of the random bits for rounding: each seed rounds differently.
    void seed(std::uint64_t bits) requires(detail::is_random(kPrecision)) { this->rounding.state = bits; }
  };

  static constexpr Status check(const Options& options) {
    if (!detail::is_rate(options.learning_rate)) return Status::kInvalidLearningRate;
    if (!options.beta1.valid() || !options.beta2.valid()) return Status::kInvalidBeta;
    if (!kHasFirst && options.beta1.value != 0) return Status::kInvalidBeta;
    if (!detail::finite(options.epsilon) || !(options.epsilon > 0)) return Status::kInvalidEpsilon;
    if (!detail::is_rate(options.weight_decay)) return Status::kInvalidWeightDecay;
    if (!kCoupled && options.learning_rate * options.weight_decay > 1) return Status::kInvalidWeightDecay;
    return Status::kOk;
  }

  // ---- The parts of a step, for callers that update tensor by tensor. ----

  using Coefficients = detail::CoefficientsIn<kernels::AdamCoefficients<Scalar>, kPrecision>;
  using MomentPointer = detail::MomentPointerIn<Scalar, kPrecision>;
  static constexpr int kMoments = kHasFirst ? 2 : 1;
  static constexpr int kUpdateBlock = detail::is_int8(kPrecision) ? kernels::kMomentBlock : 1;

  /// Counts a step. check() must have accepted the options. `counters` are Moments or Counters.
  static Coefficients advance(auto& counters, const Options& options, Scalar gradient_scale) {
    return {advance(counters.beta1_correction, counters.beta2_correction, options, gradient_scale),
            counters.rounding.next()};
  }
  /// Updates `size` parameters from their gradients and moments: m, if it exists, then v.
  template <class... Pointers>
  static void update(const Coefficients& coefficients, TensorKind, int size, Scalar* p, const Scalar* g,
                     MomentPointer moment, Pointers... second) requires(1 + sizeof...(second) == kMoments) {
    if constexpr (kInScalars) {
      kernels::adam_update<kInside, kCoupled>(size, p, g, moment, second..., coefficients);
    } else if constexpr (kHasFirst) {
      kernels::adam_update<kInside, kCoupled>(size, p, g, moment, second..., coefficients,
                                              coefficients.rounding);
    } else {
      kernels::adam_update<kInside, kCoupled>(size, p, g, kernels::NoMoments{}, moment, coefficients,
                                              coefficients.rounding);
    }
  }
  /// The same for moments in scalars, with m and v; then zeros the gradients.
  static void update_and_clear(const Coefficients& coefficients, TensorKind, int size, Scalar* p, Scalar* g,
                               Scalar* first, Scalar* second) requires(kInScalars&& kHasFirst) {
    kernels::adam_update_and_clear<kInside, kCoupled>(size, p, g, first, second, coefficients);
  }
  /// Calls body(m if it exists, v). A step may update all tensors as one.
  template <class Parameters>
  ATTUNE_INLINE static void sets_of_moments(Moments<Parameters>& moments,
                                            const auto& body) requires(kInScalars) {
    with_moments(moments, body);
  }
  /// Calls visitor(path, tensor of each set…, tensor of m if it exists, tensor of v).
  template <class Visitor, class Parameters, class... Sets>
  static void for_each_with_moments(const Visitor& visitor, Moments<Parameters>& moments, Sets&... sets) {
    with_moments(moments,
                 [&](auto&... of_moments) { detail::visit_with_moments(visitor, of_moments...)(sets...); });
  }

 private:
  template <class Parameters>
  ATTUNE_INLINE static void with_moments(Moments<Parameters>& moments, const auto& body) {
    if constexpr (kHasFirst) {
      body(moments.first, moments.second);
    } else {
      body(moments.second);
    }
  }
  // One copy of the code for moments of any parameters.
  [[gnu::noinline]] static kernels::AdamCoefficients<Scalar> advance(detail::BiasCorrection& beta1,
                                                                     detail::BiasCorrection& beta2,
                                                                     const Options& options,
                                                                     Scalar gradient_scale) {
    beta1.advance(options.beta1.fixed_point);
    beta2.advance(options.beta2.fixed_point);
    const Scalar correction1 = beta1.template value<Scalar>();
    const Scalar correction2 = beta2.template value<Scalar>();
    const Scalar root2 = kernels::square_root(correction2);
    return {.beta1 = options.beta1.value,
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
  }

  static constexpr bool kInside = variant.epsilon == EpsilonPlacement::kInsideRoot;
  static constexpr bool kCoupled = variant.weight_decay == WeightDecay::kCoupled;
};

/// Adam with decoupled weight decay, as PyTorch's AdamW (Loshchilov and Hutter, 2019).
using AdamW = Adam<>;

}  // namespace ATTUNE_NAMESPACE
