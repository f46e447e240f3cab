#include <attune/training/adafactor.hpp>

#include <algorithm>
#include <cmath>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>

#include "training/optimizer_check.hpp"
#include "training/plan_check.hpp"

namespace {

using attune::Adafactor, attune::Status, attune::StepScale;

// Without errno, which firmware has not.
double power(double base, double exponent) {
  return attune::kernels::exponential(exponent * attune::kernels::logarithm(base));
}

// The paper's algorithms 4 and 5 as they stand, in double, of one tensor.
template <int rows, int cols>
struct Reference {
  static constexpr int kSize = rows * cols;
  double p[kSize], u[kSize], r[rows], c[cols], v[cols];
  int steps;

  void start(const auto* values) {
    *this = {};
    for (int i = 0; i < kSize; ++i) p[i] = static_cast<double>(values[i]);
  }
  static double rms(const double* x) {
    double sum = 0;
    for (int i = 0; i < kSize; ++i) sum += x[i] * x[i];
    return attune::kernels::square_root(sum / kSize);
  }
  [[nodiscard]] double second_moment(int i, int j) const {
    if (rows == 1) return v[j];
    double total = 0;
    for (const double of_row : r) total += of_row;
    return r[i] * c[j] / total;
  }
  template <class Options>
  void step(const auto* g, const Options& options, bool relative) {
    ++steps;
    const double beta = 1 - power(steps, -static_cast<double>(options.beta2_decay));
    for (double& of_row : r) of_row *= beta;
    for (double& of_column : c) of_column *= beta;
    for (double& of_element : v) of_element *= beta;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) {
        const double x = static_cast<double>(g[i * cols + j]);
        const double square = (1 - beta) * (x * x + static_cast<double>(options.epsilon1));
        r[i] += square;
        c[j] += square;
        if (rows == 1) v[j] += square;
      }
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) {
        u[i * cols + j] =
            static_cast<double>(g[i * cols + j]) / attune::kernels::square_root(second_moment(i, j));
      }
    }
    const double clip = std::max(1.0, rms(u) / static_cast<double>(options.clipping));
    const double rate = static_cast<double>(options.learning_rate);
    const double alpha =
        relative ? std::max(static_cast<double>(options.epsilon2), rms(p)) *
                       std::min(rate, 1 / attune::kernels::square_root(static_cast<double>(steps)))
                 : rate;
    for (int i = 0; i < kSize; ++i)
      p[i] = p[i] * (1 - rate * static_cast<double>(options.weight_decay)) - alpha * u[i] / clip;
  }
};

template <class Optimizer, class Shape>
void expect_reference(const typename Optimizer::Options& options, double tolerance) {
  using Scalar = typename Optimizer::Scalar;
  using Set = attune::LinearParameters<Scalar, Shape::rows, Shape::cols, true>;
  static Set parameters, gradients;
  static typename Optimizer::template Moments<Set> moments;
  moments.reset();
  attune::Rng rng(5);
  check::fill_set(parameters, rng);
  constexpr bool kVector = Shape::cols == 1;
  static Reference<kVector ? 1 : Shape::rows, kVector ? Shape::rows : Shape::cols> weight;
  static Reference<1, Shape::cols> bias;
  weight.start(parameters.weight.data());
  bias.start(parameters.bias.data());
  for (int step = 0; step < 12; ++step) {
    check::fill_set(gradients, rng);
    for (int j = 0; j < Shape::cols; ++j) gradients.weight(0, j) *= Scalar(10);
    weight.step(gradients.weight.data(), options, Optimizer::kRelative);
    bias.step(gradients.bias.data(), options, Optimizer::kRelative);
    ASSERT_EQ(Optimizer::step(parameters, gradients, moments, options), Status::kOk);
  }
  for (int i = 0; i < Shape::rows * Shape::cols; ++i)
    EXPECT_NEAR(static_cast<double>(parameters.weight.data()[i]), weight.p[i], tolerance);
  for (int i = 0; i < Shape::cols; ++i)
    EXPECT_NEAR(static_cast<double>(parameters.bias.data()[i]), bias.p[i], tolerance);
}
template <int kRows, int kCols>
struct Shape {
  static constexpr int rows = kRows, cols = kCols;
};

}  // namespace

TEST(Adafactor, steps_follow_the_paper) {
  expect_reference<Adafactor<>, Shape<5, 7>>({.learning_rate = 0.02f}, 2e-6);
  expect_reference<Adafactor<>, Shape<9, 150>>({.learning_rate = 0.02f, .weight_decay = 0.1f}, 2e-6);
  expect_reference<Adafactor<>, Shape<70, 1>>({.learning_rate = 0.02f, .clipping = 0.5f}, 2e-6);
  expect_reference<Adafactor<>, Shape<1, 3>>({.learning_rate = 0.02f, .beta2_decay = 0.5f}, 2e-6);
  using Relative = Adafactor<StepScale::kRelative>;
  expect_reference<Relative, Shape<5, 7>>({.learning_rate = 0.4f}, 4e-6);
  expect_reference<Relative, Shape<33, 65>>({}, 2e-6);
  expect_reference<Adafactor<StepScale::kAbsolute, double>, Shape<6, 67>>({.learning_rate = 0.02}, 1e-12);
  expect_reference<Adafactor<StepScale::kRelative, double>, Shape<6, 67>>({}, 1e-12);
}

TEST(Adafactor, keeps_rows_and_columns_of_a_matrix) {
  using Set = attune::LinearParameters<float, 32, 48, true>;
  static_assert(sizeof(Adafactor<>::Moments<Set>) == sizeof(float) * (32 + 48 + 48) + sizeof(std::uint32_t));
}

TEST(Adafactor, refuses_options_that_could_overflow_parameters) {
  using Options = Adafactor<>::Options;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto expect_refused = [](const Options& options, Status status) {
    static check::State<Adafactor<>> state;
    const auto before = state.parameters;
    EXPECT_EQ(state.step(options), status);
    EXPECT_TRUE(check::same_bits(state.parameters, before));
    EXPECT_EQ(state.moments.steps, 0u);
  };
  expect_refused({.learning_rate = -1}, Status::kInvalidLearningRate);
  expect_refused({.learning_rate = nan}, Status::kInvalidLearningRate);
  expect_refused({.beta2_decay = 0}, Status::kInvalidBeta);
  expect_refused({.beta2_decay = nan}, Status::kInvalidBeta);
  expect_refused({.epsilon1 = 0}, Status::kInvalidEpsilon);
  expect_refused({.epsilon2 = 0}, Status::kInvalidEpsilon);
  expect_refused({.clipping = 0}, Status::kInvalidMaxNorm);
  expect_refused({.clipping = nan}, Status::kInvalidMaxNorm);
  expect_refused({.learning_rate = 2, .weight_decay = 1}, Status::kInvalidWeightDecay);
}

TEST(Adafactor, keeps_parameters_finite_under_the_largest_gradients) {
  using Set = check::Set<float>;
  static Set parameters, gradients;
  static Adafactor<>::Moments<Set> moments;
  const float largest = attune::detail::kLargestGradient<float>;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  for (int step = 0; step < 8; ++step) {
    attune::set_zero(gradients);
    gradients.weight(step % 3, step % 5) = step % 2 == 0 ? largest : 1e-30f;
    gradients.bias(0, step % 5) = step % 2 == 0 ? 1e-30f : -largest;
    ASSERT_EQ(Adafactor<>::step(parameters, gradients, moments, {}), Status::kOk);
    attune::for_each_tensor(
        [](const attune::TensorPath&, const auto& tensor) {
          for (int i = 0; i < tensor.size; ++i) EXPECT_TRUE(std::isfinite(tensor.data()[i]));
        },
        parameters);
  }
}

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 6, .d_model = 12, .num_heads = 3};
using Layer = attune::MultiHeadAttention<kShape>;
template <class Optimizer, class Model>
using TrainerOf = attune::Trainer<Model, attune::MeanSquaredError, Optimizer>;

}  // namespace

TEST(Adafactor, relative_steps_of_parameters_whose_squares_overflow_are_right) {
  using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 5, .d_out = 7, .bias = false}>;
  using Optimizer = Adafactor<StepScale::kRelative>;
  for (const float size : {1.0f, 1e18f, 1e20f, 1e37f}) {
    Model::Parameters p{}, gradients{};
    Optimizer::Moments<Model::Parameters> moments{};
    for (float& value : p.weight.values) value = size;
    for (float& value : gradients.weight.values) value = 1;
    EXPECT_EQ(Optimizer::step(p, gradients, moments, {.learning_rate = 0.25f}), Status::kOk);
    for (const float value : p.weight.values) EXPECT_NEAR(value / size, 0.75f, 1e-5f);
  }
}

TEST(Adafactor, keeps_gradients_of_the_largest_tensor_in_backward) {
  using InBackward =
      attune::Trainer<Layer, attune::MeanSquaredError, Adafactor<>, 1, attune::UpdateInBackward>;
  static_assert(InBackward::memory().gradients == 12 * 12 * sizeof(float));
}

TEST(Adafactor, learns_a_linear_map_to_the_same_bits_on_every_target) {
  using Map = attune::Linear<attune::LinearShape{.rows = 8, .d_in = 6, .d_out = 5}>;
  auto& trainer = check::fresh<0, TrainerOf<Adafactor<>, Map>>();
  static Map::Parameters truth;
  static check::Example<Map> data;
  static Map::InferenceScratch scratch;
  attune::Rng rng(7);
  check::fill_set(truth, rng);
  float first = 0, last = 0;
  for (int step = 0; step < 600; ++step) {
    check::fill(data.x, rng);
    Map::forward(truth, data.x, data.target, scratch);
    const float rate = 2e-2f * (1 - static_cast<float>(step) / 600);
    const auto result = trainer.step(data.x, data.target, {.learning_rate = rate});
    ASSERT_TRUE(result.ok());
    if (step == 0) first = result.loss;
    last = result.loss;
  }
  EXPECT_LT(last, 1e-4f * first);
  EXPECT_EQ(attune::hash_bits(trainer.parameters()), ATTUNE_FUSED ? 0x7fbf53b1u : 0x887c5b36u);
}
