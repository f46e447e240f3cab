#include <attune/training/adam.hpp>

#include "training/optimizer_check.hpp"

namespace {

using attune::AdamVariant;
using attune::EpsilonPlacement;
using attune::Status;
using attune::WeightDecay;
using check::expect_refused;
using check::kInfinity;
using check::kNan;
using check::Set;
using check::State;

double power(double base, int exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) result *= base;
  }
  return result;
}

double root(double x) { return attune::kernels::square_root(x); }

// Adam in plain double, for one parameter.
template <AdamVariant variant>
struct PlainAdam {
  double m = 0, v = 0;
  int t = 0;
  double step(double p, double g, double lr, double epsilon, double decay) {
    ++t;
    if (variant.weight_decay == WeightDecay::kCoupled) g += decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    const double m_hat = m / (1 - power(0.9, t)), v_hat = v / (1 - power(0.999, t));
    if (variant.weight_decay == WeightDecay::kDecoupled) p -= lr * decay * p;
    if (variant.epsilon == EpsilonPlacement::kInsideRoot) return p - lr * m_hat / root(v_hat + epsilon);
    if (variant.epsilon == EpsilonPlacement::kOutsideRoot) return p - lr * m_hat / (root(v_hat) + epsilon);
    return p - lr * m * root(1 - power(0.999, t)) / (1 - power(0.9, t)) / (root(v) + epsilon);
  }
};

template <AdamVariant variant>
void expect_formula() {
  using Optimizer = attune::Adam<variant, double>;
  State<Optimizer> state;
  PlainAdam<variant> plain[15];
  Set<double> expected = state.parameters;
  for (int t = 0; t < 20; ++t) {
    for (int i = 0; i < 15; ++i) {
      expected.weight.values[i] =
          plain[i].step(expected.weight.values[i], state.gradients.weight.values[i], 0.01, 1e-2, 0.1);
    }
    EXPECT_EQ(state.step({.learning_rate = 0.01, .epsilon = 1e-2, .weight_decay = 0.1}), Status::kOk);
    // 1 − 0.999ᵗ in plain double loses 2⁻⁵³/(1 − 0.999ᵗ) = 1e-13 relative, for a step of 0.01.
    EXPECT_LE(check::max_difference(state.parameters.weight, expected.weight), 2e-14);
    check::fill(
        state.gradients.weight, *[] {
          static attune::Rng rng(9);
          return &rng;
        }());
  }
}

}  // namespace

TEST(Adam, epsilon_and_weight_decay_are_applied_as_configured) {
  expect_formula<AdamVariant{}>();
  expect_formula<AdamVariant{.epsilon = EpsilonPlacement::kInsideRoot}>();
  expect_formula<AdamVariant{.epsilon = EpsilonPlacement::kBeforeBiasCorrection}>();
  expect_formula<AdamVariant{.weight_decay = WeightDecay::kCoupled}>();
  expect_formula<AdamVariant{.weight_decay = WeightDecay::kCoupled,
                             .epsilon = EpsilonPlacement::kInsideRoot}>();
}

TEST(Adam, gradient_scale_scales_the_gradients) {
  using Optimizer = attune::AdamW;
  State<Optimizer> scaled, by_hand;
  for (float& g : by_hand.gradients.weight.values) g *= 0.25f;
  for (float& g : by_hand.gradients.bias.values) g *= 0.25f;
  EXPECT_EQ(Optimizer::step(scaled.parameters, scaled.gradients, scaled.moments, {}, 0.25f), Status::kOk);
  EXPECT_EQ(by_hand.step({}), Status::kOk);
  EXPECT_TRUE(check::same_bits(scaled.parameters, by_hand.parameters));
}

TEST(Adam, bias_correction_is_exact_after_a_million_steps) {
  for (const double beta : {0.9, 0.99, 0.999, 0.9999, 0.999999}) {
    const attune::DecayRate<float> rate = beta;
    attune::detail::BiasCorrection correction{};
    int at = 1;
    for (int t = 1; t <= 1'000'000; ++t) {
      correction.advance(rate.fixed_point);
      if (t == at || t == 1'000'000) {
        const double exact = 1 - power(beta, t);
        EXPECT_NEAR(correction.value<float>(), exact, exact * 1e-6);
        EXPECT_NEAR(correction.value<double>(), exact, 1e-12);
        at *= 10;
      }
    }
  }
}

TEST(Adam, decay_rate_is_rounded_once_each) {
  constexpr attune::DecayRate<float> kRate = 0.999;
  static_assert(kRate.value == 0.999f && kRate.complement == static_cast<float>(1.0 - 0.999) &&
                kRate.valid());
  EXPECT_NE(kRate.complement, 1.0f - 0.999f);
}

TEST(Adam, only_decoupled_decay_is_bounded_by_the_learning_rate) {
  using Coupled = attune::Adam<attune::AdamVariant{.weight_decay = attune::WeightDecay::kCoupled}>;
  EXPECT_EQ(Coupled::check({.learning_rate = 2, .weight_decay = 1}), Status::kOk);
  EXPECT_EQ(Coupled::check({.weight_decay = -1}), Status::kInvalidWeightDecay);
  EXPECT_EQ(attune::AdamW::check({.learning_rate = 2, .weight_decay = 1}), Status::kInvalidWeightDecay);
}

TEST(Adam, refuses_options_that_would_ruin_the_parameters) {
  using Optimizer = attune::AdamW;
  for (const float bad : {-1e-3f, kNan<float>, kInfinity<float>, -kInfinity<float>}) {
    expect_refused<Optimizer>({.learning_rate = bad}, Status::kInvalidLearningRate);
    expect_refused<Optimizer>({.weight_decay = bad}, Status::kInvalidWeightDecay);
    expect_refused<Optimizer>({.epsilon = bad}, Status::kInvalidEpsilon);
  }
  for (const double bad : {1.0, 1.5, -0.1, kNan<double>, kInfinity<double>, -kInfinity<double>}) {
    expect_refused<Optimizer>({.beta1 = bad}, Status::kInvalidBeta);
    expect_refused<Optimizer>({.beta2 = bad}, Status::kInvalidBeta);
  }
  expect_refused<Optimizer>({.epsilon = 0.0f}, Status::kInvalidEpsilon);
}

TEST(Adam, accepts_the_edges) {
  State<attune::AdamW> state;
  const auto before = state.parameters;
  EXPECT_EQ(state.step({.learning_rate = 0.0f}), Status::kOk);
  EXPECT_TRUE(check::same_bits(state.parameters, before));
  EXPECT_EQ(state.step({.beta1 = 0.0, .beta2 = 0.0, .weight_decay = 0.0f}), Status::kOk);
}

TEST(Adam, reset_forgets) {
  State<attune::AdamW> state;
  EXPECT_EQ(state.step({}), Status::kOk);
  state.moments.reset();
  const decltype(state.moments) fresh{};
  EXPECT_TRUE(check::same_bits(state.moments.first, fresh.first));
  EXPECT_TRUE(check::same_bits(state.moments.second, fresh.second));
  EXPECT_EQ(state.moments.beta1_correction.complement, 0u);
}
