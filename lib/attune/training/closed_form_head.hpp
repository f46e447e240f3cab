// A linear head in closed form, without training: ridge regression on the features of a frozen model. The
// solution stays close to the model's original head.
//
//   A·ΔW = Zᵀ·(T − Z·W₀),   A = Zᵀ·Z + μ·(n/n₀)·Z₀ᵀ·Z₀ + λ·I,   W = W₀ + ΔW
//
// A row of Z holds an example's features and a one, for the bias. T = scale·(onehot − 1/classes), and W₀ is
// the original head. Z₀ holds the features of n₀ factory examples, stored as their Gram matrix Z₀ᵀ·Z₀.
// Outputs on factory examples change little, so little is forgotten (Hoerl and Kennard, "Ridge Regression",
// 1970; the second term as in elastic consolidation, Kirkpatrick et al., 2017).
//
//   attune::ClosedFormHead<32, 10> device;                  // sums over examples: add, remove, save as it is
//   attune::infer<Front>(kFront, x, features, scratch);
//   status = device.add(features, label);
//   status = device.solve(kHead, kFactory, head, room);     // kFactory: another one, filled on the PC
//
// Only the sums over examples are stored. The solver is a Cholesky factorization (cholesky.hpp), with the
// same bits on every target.
#pragma once

#include <cstdint>
#include <limits>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/layers/linear.hpp>
#include <attune/training/cholesky.hpp>

namespace ATTUNE_NAMESPACE {

/// Sums over features with labels, and the heads computed from them. Zero-initialized, it has no examples. A
/// plain value: a store saves the object itself.
template <int num_features, int num_classes, class ScalarType = float>
class ClosedFormHead {
  static_assert(detail::Holds<(num_features > 0 && num_classes > 1)>,
                "attune::ClosedFormHead: at least one feature and two classes are required");
  static constexpr int kSize = num_features + 1;
  // The relative rounding error of a sum of kSize terms, at most.
  static constexpr ScalarType kNoise = kSize * std::numeric_limits<ScalarType>::epsilon();

 public:
  using Scalar = ScalarType;
  /// The layer of the computed parameters.
  using Head = Linear<LinearShape{.rows = 1, .d_in = num_features, .d_out = num_classes}, Scalar>;
  /// The features of one example, [1, num_features].
  using Features = typename Head::Input;
  /// A probability for each class of one example, [1, num_classes].
  using SoftLabels = typename Head::Output;
  struct Options {
    Scalar ridge = 1;                // λ, in [0, 1e6]
    Scalar rehearsal = Scalar(0.3);  // μ, in [0, 1e6]: weight of the outputs on factory examples
    Scalar scale = 8;  // distance between the output of the right class and the others, in (0, 1e6]
  };
  /// Memory of solve(); dead between two calls.
  struct Scratch {
    Tensor<Scalar, kSize, kSize> matrix;          // A, then its Cholesky factor
    Tensor<Scalar, kSize, num_classes> solution;  // the right-hand side, then W
  };

  /// Forgets all examples.
  void clear() {  // not by a copy of zeros, which would be on the stack without optimization
    gram_.set_zero();
    sums_.set_zero();
    for (std::uint32_t& count : examples_) count = 0;
  }
  /// Adds an example: features[1, num_features] and the class `label`. With nothing changed, returns
  /// kInvalidTarget, or kNotFinite if a feature or a sum of squares is infinite or NaN.
  Status add(ConstView<Features> features, int label) { return change(features, label, 1); }
  /// Adds an example with a probability of each class, as balanced_labels() writes them. It counts as an
  /// example of the likeliest class. With nothing changed, returns kInvalidTarget if a probability is
  /// negative or NaN, or their sum is not 1; kNotFinite as above.
  Status add(ConstView<Features> features, ConstView<SoftLabels> labels) {
    return change(features, labels, 1);
  }
  /// Removes an example that was added before; the sums return to their earlier values, up to rounding.
  /// Returns kNoTargets if the class has no example.
  Status remove(ConstView<Features> features, int label) {
    if (label >= 0 && label < num_classes && examples_[label] == 0) return Status::kNoTargets;
    return change(features, label, -1);
  }
  /// Removes an example that was added with these probabilities.
  Status remove(ConstView<Features> features, ConstView<SoftLabels> labels) {
    const int label = likeliest(labels);
    if (label >= 0 && examples_[label] == 0) return Status::kNoTargets;
    return change(features, labels, -1);
  }
  /// The number of examples of a class.
  [[nodiscard]] int examples(int label) const {
    return label >= 0 && label < num_classes ? static_cast<int>(examples_[label]) : 0;
  }
  /// The number of examples.
  [[nodiscard]] int examples() const {
    int all = 0;
    for (int label = 0; label < num_classes; ++label) all += examples(label);
    return all;
  }

  /// Writes the head for these examples to `head`, of Head's tensors, which may be `base`. `base` is W₀, in
  /// any storage (weights/weights.hpp). It may have only the first classes, and no bias. `factory` holds the
  /// examples to remember, or none; its classes do not matter. On an error nothing is written:
  ///   kNoTargets           there are no own examples
  ///   kInvalidWeightDecay  an option is out of range
  ///   kIllConditioned      features are too large for the ridge, or outputs of the base for the scale: the
  ///                        equations are singular, or rounding could change outputs by scale/16
  ///   kNotFinite           the base or the solution is not finite
  template <class Base, int factory_classes, class HeadParameters>
  Status solve(const Base& base, const ClosedFormHead<num_features, factory_classes, Scalar>& factory,
               HeadParameters& head, Scratch& scratch, const Options& options = {}) const {
    static_assert(detail::Holds<(decltype(base.weight)::rows == num_features)>,
                  "attune::ClosedFormHead: the base's weight must be [num_features, classes]");
    static_assert(
        detail::Holds<(decltype(base.weight)::cols <= num_classes)>,
        "attune::ClosedFormHead: the base has more classes than the head; give the head all of them");
    const int count = examples();
    if (count == 0) return Status::kNoTargets;
    for (const Scalar option : {options.ridge, options.rehearsal, options.scale}) {
      if (!(option >= 0 && option <= Scalar(1e6))) return Status::kInvalidWeightDecay;
    }
    if (options.scale == 0) return Status::kInvalidWeightDecay;
    const int of_factory = factory.examples();
    const Scalar weight =
        of_factory > 0 ? options.rehearsal * static_cast<Scalar>(count) / static_cast<Scalar>(of_factory)
                       : Scalar(0);
    // Without a ridge, fewer examples than unknowns have no single solution.
    if (options.ridge == 0 && count + (weight > 0 ? of_factory : 0) < kSize) return Status::kIllConditioned;
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j <= i; ++j) {
        scratch.matrix(i, j) = kernels::multiply_add(weight, factory.gram()(i, j), gram_(i, j));
      }
      scratch.matrix(i, i) += options.ridge;
    }
    right_side(base, options.scale, scratch.solution);
    const Scalar least_pivot = detail::factor_cholesky<kSize>(scratch.matrix, kNoise);
    if (least_pivot == 0) return Status::kIllConditioned;
    for (int label = 0; label < num_classes; ++label) {
      detail::solve_lower<kSize>(scratch.matrix, &scratch.solution(0, label), num_classes);
      detail::solve_lower_transposed<kSize>(scratch.matrix, &scratch.solution(0, label), num_classes);
    }
    // Rounding changes outputs by about kNoise·√(Σ_i A_ii·ΔW_i² / (examples · least pivot)).
    const Scalar largest_error = options.scale / 16;
    const Scalar bound = largest_error * largest_error * static_cast<Scalar>(count) * least_pivot;
    bool accurate = true;
    for (int label = 0; label < num_classes; ++label) {
      Scalar squares = 0;
      for (int i = 0; i < kSize; ++i) {
        Scalar& weight_of_label = scratch.solution(i, label);
        const Scalar noise = kNoise * weight_of_label;
        squares = kernels::multiply_add(gram_(i, i) * noise, noise, squares);
        weight_of_label += element(base, i, label);
      }
      accurate = accurate && squares <= bound && squares - squares == 0;
    }
    if (!kernels::finite<Scalar>(scratch.solution.size, scratch.solution.data())) return Status::kNotFinite;
    if (!accurate) return Status::kIllConditioned;
    for (int label = 0; label < num_classes; ++label) {
      for (int i = 0; i < num_features; ++i) head.weight(i, label) = scratch.solution(i, label);
      head.bias(0, label) = scratch.solution(num_features, label);
    }
    return Status::kOk;
  }

  /// Zᵀ·Z[num_features + 1, num_features + 1]; only the lower half is stored.
  [[nodiscard]] const Tensor<Scalar, kSize, kSize>& gram() const { return gram_; }
  /// Zᵀ·labels[num_features + 1, num_classes]: sums of features per class, and the number of examples.
  [[nodiscard]] const Tensor<Scalar, kSize, num_classes>& class_sums() const { return sums_; }

 private:
  Status change(ConstView<Features> features, int label, int sign) {
    if (label < 0 || label >= num_classes) return Status::kInvalidTarget;
    return change_sums(features, label, sign, [&](int i, Scalar z) { sums_(i, label) += z; });
  }
  Status change(ConstView<Features> features, ConstView<SoftLabels> labels, int sign) {
    const int label = likeliest(labels);
    if (label < 0) return Status::kInvalidTarget;
    return change_sums(features, label, sign, [&](int i, Scalar z) {
      for (int c = 0; c < num_classes; ++c) sums_(i, c) += labels(0, c) * z;
    });
  }
  // The likeliest class; -1 if these are no probabilities.
  static int likeliest(ConstView<SoftLabels> labels) {
    int label = 0;
    Scalar all = 0;
    for (int c = 0; c < num_classes; ++c) {
      if (!(labels(0, c) >= 0)) return -1;
      all += labels(0, c);
      if (labels(0, c) > labels(0, label)) label = c;
    }
    return all >= Scalar(0.999) && all <= Scalar(1.001) ? label : -1;
  }
  // add(i, ±z_i) changes the sums of classes.
  Status change_sums(ConstView<Features> features, int label, int sign, const auto& add) {
    const auto z = [&](int i) { return i < num_features ? features(0, i) : Scalar(1); };
    const auto sum = [&](int i, int j) {
      return kernels::multiply_add(static_cast<Scalar>(sign) * z(i), z(j), gram_(i, j));
    };
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j <= i; ++j) {
        if (const Scalar next = sum(i, j); next - next != 0) return Status::kNotFinite;
      }
    }
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j <= i; ++j) gram_(i, j) = sum(i, j);
      add(i, static_cast<Scalar>(sign) * z(i));
    }
    examples_[label] += static_cast<std::uint32_t>(sign);
    return Status::kOk;
  }
  // W₀, with the bias after the weights; zero for new classes and without a bias.
  static Scalar element(const auto& base, int i, int label) {
    if (label >= base.weight.cols) return 0;
    if (i < num_features) return detail::element_of(base.weight, i, label);
    if constexpr (requires { base.bias; }) return detail::element_of(base.bias, 0, label);
    return 0;
  }
  // Zᵀ·T − Zᵀ·Z·W₀.
  void right_side(const auto& base, Scalar scale, Tensor<Scalar, kSize, num_classes>& to) const {
    for (int i = 0; i < kSize; ++i) {
      Scalar all = 0;
      for (int label = 0; label < num_classes; ++label) all += sums_(i, label);
      for (int label = 0; label < num_classes; ++label) {
        Scalar sum = scale * (sums_(i, label) - all / num_classes);
        for (int j = 0; j < kSize; ++j) {
          const Scalar of_gram = j <= i ? gram_(i, j) : gram_(j, i);
          sum = kernels::multiply_add(-of_gram, element(base, j, label), sum);
        }
        to(i, label) = sum;
      }
    }
  }

  Tensor<Scalar, kSize, kSize> gram_{};
  Tensor<Scalar, kSize, num_classes> sums_{};  // Σ z per class, weighted by its probabilities
  std::uint32_t examples_[std::size_t{num_classes}]{};
};

}  // namespace ATTUNE_NAMESPACE
