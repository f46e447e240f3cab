// Compares backward of a layer with finite differences of forward, in double.
//
//   const attune::GradientCheck check = attune::check_gradients<MyLayer<double>>();
//   if (!check.ok()) std::printf("%s[%d]: %g, not %g\n", check.tensor, check.index, check.analytic,
//   check.numeric);
//
// Parameters, input and dL/dy are random, and L = Σ dy ∘ y. Every scalar of every tensor moves by ±step, at
// two inferences each. Differences use the inference forward, so a training forward that computes something
// else fails as well. A layer with dropout is differentiated in training, with the same masks for all passes.
// Gradients start from 1 and dx from 1e300: backward must add to gradients and overwrite dx. If the layer
// says that it adds once (Additions, execution/layer.hpp), a backward from 0 must give the same sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/pass.hpp>
#include <attune/layers/dropout.hpp>

namespace ATTUNE_NAMESPACE {

/// How check_gradients() draws values and differentiates.
struct GradientCheckOptions {
  double low = -1;          // parameters and input are drawn from [low, high)
  double high = 1;          // the end of that range
  double step = 1e-5;       // h of the central difference
  std::uint64_t seed = 17;  // of the generator
};

/// The worst element that check_gradients() found.
struct [[nodiscard]] GradientCheck {
  /// A central difference with h = 1e-5 has an error of h²/6·|f‴| ≈ 2e-11·|f‴| and of ε·|f|/h ≈ 2e-11·|f|.
  /// While |f| and |f‴| stay below a few tens, a larger error means a wrong gradient.
  static constexpr double kTolerance = 1e-9;

  char tensor[64];  // its name, such as "encoder.query.weight"; "x" for the input
  int index;        // index of the element within the tensor, row by row
  double analytic;  // from backward; NaN if backward wrote nothing
  double numeric;   // from the central difference
  double error;     // |analytic − numeric|, divided by the tensor's largest |numeric| if that exceeds 1
  /// The largest |numeric| over all parameters. If it is near 0, the check has compared nothing.
  double largest_of_parameters;
  double largest_of_input;  // the same for the input
  Status status;            // forward's answer to the token ids 0 and 1, alternating
  bool adds_again;          // whether backward adds more than once, against kAbilities.additions

  /// Whether forward accepted its input, no error exceeds `tolerance`, and backward adds as often as it says.
  [[nodiscard]] constexpr bool ok(double tolerance = kTolerance) const {
    return status == Status::kOk && error <= tolerance && !adds_again;
  }
};

namespace detail {

/// Writes "parent.name" from `to` on, up to `end` at most, and a zero after it. Returns the end of the text.
inline char* write_name(const TensorPath& path, char* to, char* end) {
  if (path.parent != nullptr) {
    to = write_name(*path.parent, to, end);
    if (to != end) *to++ = '.';
  }
  for (const char* from = path.name; *from != 0 && to != end;) *to++ = *from++;
  *to = 0;
  return to;
}

/// Compares central differences of loss() for every scalar of `value` with `gradient`, and keeps the worst in
/// `check`. Returns the largest |numeric|.
double compare_gradient(const auto& loss, const TensorPath& path, auto& value, const auto& gradient,
                        double step, GradientCheck& check) {
  constexpr int kSize = std::remove_reference_t<decltype(value)>::size;
  const auto magnitude = [](double x) { return x < 0 ? -x : x; };
  double largest = 0, worst = -1;
  int index = 0;
  double numeric_of_worst = 0;
  for (int i = 0; i < kSize; ++i) {
    const double kept = value.values[i];
    value.values[i] = kept + step;
    const double above = loss();
    value.values[i] = kept - step;
    const double below = loss();
    value.values[i] = kept;
    const double numeric = (above - below) / (2 * step);
    if (magnitude(numeric) > largest) largest = magnitude(numeric);
    double difference = magnitude(numeric - gradient.values[i]);
    if (difference != difference) difference = std::numeric_limits<double>::infinity();
    if (difference > worst) worst = difference, index = i, numeric_of_worst = numeric;
  }
  const double error = largest > 1 ? worst / largest : worst;
  if (!(error <= check.error)) {
    (void)write_name(path, check.tensor, check.tensor + sizeof check.tensor - 1);
    check.index = index;
    check.analytic = gradient.values[index];
    check.numeric = numeric_of_worst;
    check.error = error;
  }
  return largest;
}

/// A layer's memory with random parameters, input and dL/dy.
template <class Layer>
struct GradientProblem {
  static constexpr bool kDrops = DropsIn<typename Layer::Tape>;

  typename Layer::Parameters parameters, gradients;
  typename Layer::Input x, dx;
  typename Layer::Output y, inferred, dy;
  typename Layer::Tape tape, start;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  void draw(const GradientCheckOptions& options) {
    Rng rng(options.seed);
    const auto fill = [&rng](auto& values, double low, double high) {
      for (double& value : values) value = rng.uniform(low, high);
    };
    for_each_tensor([&](const TensorPath&, auto& tensor) { fill(tensor.values, options.low, options.high); },
                    parameters);
    if constexpr (TakesIds<Layer>) {
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i % 2);
    } else {
      fill(x.values, options.low, options.high);
    }
    fill(dy.values, -1, 1);
    Rng masks(options.seed + 1);
    draw_seeds(tape, masks);
    start = tape;
  }

  Status forward(const auto&... mask) {
    tape = start;
    return status_of([&] { return attune::forward<Layer>(parameters, x, y, tape, scratch, mask...); });
  }
  Status infer(const auto&... mask) {
    return status_of([&] { return attune::infer<Layer>(parameters, x, inferred, inference, mask...); });
  }
  /// Call after forward(), with the same mask. `to` is dx, or NoGradient.
  void backward(auto&& to, const auto&... mask) {
    attune::backward<Layer>(parameters, x, tape, dy, to, gradients, scratch, mask...);
  }
  /// L in inference; in training, if the layer has dropout.
  double loss(const auto&... mask) {
    (void)(kDrops ? forward(mask...) : infer(mask...));
    const typename Layer::Output& output = kDrops ? y : inferred;
    double sum = 0;
    for (int i = 0; i < output.size; ++i) sum += output.values[i] * dy.values[i];
    return sum;
  }
};

template <class Layer, class... Mask>
GradientCheck check_gradients(GradientProblem<Layer>& problem, const GradientCheckOptions& options,
                              const Mask&... mask) {
  GradientCheck check{};
  check.error = -1;
  problem.draw(options);
  if (check.status = problem.infer(mask...); check.status != Status::kOk) return check;
  const auto for_each_gradient = [&](const auto& body) {
    for_each_tensor(
        [&body](const TensorPath&, auto& tensor) {
          for (double& g : tensor.values) body(g);
        },
        problem.gradients);
  };
  const auto add_to = [&](double start) {
    (void)problem.forward(mask...);
    for_each_gradient([start](double& g) { g = start; });
    if constexpr (TakesIds<Layer>) {
      problem.backward(NoGradient{}, mask...);
    } else {
      constexpr double kUnwritten = 1e300;  // no NaN, which checked mode stops at
      for (double& dx : problem.dx.values) dx = kUnwritten;
      problem.backward(problem.dx, mask...);
      for (double& dx : problem.dx.values) {
        if (dx == kUnwritten) dx = std::numeric_limits<double>::quiet_NaN();
      }
    }
  };
  if (kAbilities<Layer>.additions == Additions::kOnce) {
    constexpr double kStart = 1e6 / 3;  // every addition is rounded
    add_to(0);
    for_each_gradient([](double& g) { g += kStart; });
    const std::uint32_t of_one_addition = hash_bits(problem.gradients);
    add_to(kStart);
    check.adds_again = hash_bits(problem.gradients) != of_one_addition;
  }
  add_to(1);
  const auto loss = [&] { return problem.loss(mask...); };
  const auto larger = [](double a, double b) { return a > b ? a : b; };
  for_each_tensor(
      [&](const TensorPath& path, auto& value, auto& gradient) {
        for (double& g : gradient.values) g -= 1;
        check.largest_of_parameters = larger(
            check.largest_of_parameters, compare_gradient(loss, path, value, gradient, options.step, check));
      },
      problem.parameters, problem.gradients);
  if constexpr (!TakesIds<Layer>) {
    check.largest_of_input = compare_gradient(loss, {"x"}, problem.x, problem.dx, options.step, check);
  }
  return check;
}

}  // namespace detail

/// Compares the gradients of `Layer`, a layer of doubles, with finite differences: see the top of this file.
/// `mask` (one, or none) goes to every call that takes it. No heap. The layer's memory is static: one call at
/// a time.
template <detail::CheckedLayer Layer, class... Mask>
GradientCheck check_gradients(const GradientCheckOptions& options = {}, const Mask&... mask) {
  static_assert(detail::Holds<std::is_same_v<typename Layer::Scalar, double>>,
                "attune::check_gradients: finite differences need double; make the layer's Scalar a template "
                "parameter and check that of double");
  static_assert(detail::Holds<(sizeof...(Mask) <= 1)>, "attune::check_gradients: a call takes one mask");
  if constexpr (std::is_same_v<typename Layer::Scalar, double> && sizeof...(Mask) <= 1) {
    static detail::GradientProblem<Layer> problem;
    return detail::check_gradients(problem, options, mask...);
  }
}

}  // namespace ATTUNE_NAMESPACE
