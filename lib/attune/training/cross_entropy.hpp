// Cross-entropy of logits and classes, with PyTorch's label smoothing, class weights and ignored targets.
//
//   ln p = log-softmax(x),   loss_i = −Σ_c q_ic · ln p_ic,   q_ic = w_c · ((1 − s)·[c = t_i] + s/C)
//   mean: Σ_i loss_i / Σ_i w_(t_i),   sum: Σ_i loss_i,   over the rows whose target is not ignored;
//   a trainer takes the rows of the whole batch
//   dx_ic = r · ((Σ_k q_ik)·p_ic − q_ic),   r = 1/Σ_i w_(t_i) or 1
//
// s is the label smoothing of Szegedy et al., "Rethinking the Inception Architecture for Computer Vision",
// 2016, section 7.
//
// The generalized cross-entropy (Zhang and Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural
// Networks with Noisy Labels", 2018) tolerates wrong labels. With the exponent e in [0.01, 1], p = p_i(t_i)
// and w = w_(t_i):
//
//   loss_i = w·(1 − p^e)/e,   dx_ic = r · w·p^e·(p_ic − [c = t_i])
//
// In float, the difference makes loss_i/w wrong by up to about 10⁻⁷/e; the gradient is as exact as ever.
#pragma once

#include <utility>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/log_softmax.hpp>
#include <attune/training/loss.hpp>

namespace ATTUNE_NAMESPACE {

/// Reduction, smoothing and ignored targets of a cross-entropy.
struct CrossEntropyOptions {
  Reduction reduction = Reduction::kMean;  // or kSum
  double label_smoothing = 0;              // s, in [0, 1]
  double noise_exponent = 0;               // e in [0.01, 1], for labels that may be wrong; 0: cross-entropy
  int ignore_index = -100;                 // rows with this target add nothing
};

/// L = −log softmax(y)[target], averaged over the targets of the batch like PyTorch's nn.CrossEntropyLoss.
/// Targets are classes, an integer for each row of y.
template <CrossEntropyOptions options = CrossEntropyOptions{}>
struct CrossEntropy {
  static_assert(
      detail::Holds<(options.reduction == Reduction::kMean || options.reduction == Reduction::kSum)>,
      "attune::CrossEntropy: reduction must be kMean or kSum; for neither use forward_rows");
  static_assert(detail::Holds<(options.label_smoothing >= 0 && options.label_smoothing <= 1)>,
                "attune::CrossEntropy: label_smoothing must be in [0, 1]");
  static_assert(
      detail::Holds<(options.noise_exponent == 0 ||
                     (options.noise_exponent >= 0.01 && options.noise_exponent <= 1))>,
      "attune::CrossEntropy: noise_exponent must be 0 or in [0.01, 1]; 0.7 suits many wrong labels, "
      "0 is cross-entropy");
  static_assert(
      detail::Holds<(options.noise_exponent == 0 || options.label_smoothing == 0)>,
      "attune::CrossEntropy: noise_exponent and label_smoothing are mutually exclusive; choose one");

  /// The mean is taken over all targets of a batch that are not ignored.
  static constexpr bool kMeanOverBatch = options.reduction == Reduction::kMean;
  /// Targets are Ids<rows> (core/ids.hpp). A Trainer takes the targets of a whole batch, stacked.
  static constexpr bool kClassTargets = true;
  /// The number of rows of a matrix or view of logits.
  template <class Logits>
  static constexpr int kRowsOf = decltype(dense_view(std::declval<const Logits&>()))::rows;

  /// Returns the loss of logits[rows, classes] for one class per row, times `weight`. Writes d_logits =
  /// weight · dL/dlogits, zero for ignored targets. `targets` converts to Ids<rows>; `d_logits` may be
  /// `logits`. If every target is ignored, the loss is 0 (PyTorch's mean is NaN). On an error nothing is
  /// written: Status::kInvalidTarget if a target is neither a class nor ignored, Status::kInvalidClassWeight
  /// if a weight is negative, infinite or NaN.
  template <class Logits, class Targets, class Gradient>
  static auto forward(const Logits& logits, const Targets& targets, Gradient&& d_logits,
                      typename std::remove_cvref_t<Gradient>::Scalar weight = 1) {
    using Scalar = typename std::remove_cvref_t<Gradient>::Scalar;
    return mean(dense_view(logits), targets, static_cast<const Scalar*>(nullptr), dense_view(d_logits),
                weight);
  }
  /// The same with a weight for each class, class_weights[1, classes], none negative.
  template <class Logits, class Targets, class ClassWeights, class Gradient>
    requires(requires(const ClassWeights& class_weights) { dense_view(class_weights); })
  static auto forward(const Logits& logits, const Targets& targets, const ClassWeights& class_weights,
                      Gradient&& d_logits, typename std::remove_cvref_t<Gradient>::Scalar weight = 1) {
    const auto weights = dense_view(class_weights);
    static_assert(detail::Holds<(weights.rows == 1 && weights.cols == decltype(dense_view(logits))::cols)>,
                  "attune::CrossEntropy: class_weights must be [1, classes]");
    return mean(dense_view(logits), targets, weights.data, dense_view(d_logits), weight);
  }

  /// For trainers: Σ_i loss_i, its normalizer Σ_i w_(t_i), and the gradient. Same errors as forward. Class
  /// weights are null, or one per class.
  template <class Logits, class Gradient>
  static LossSum<typename Gradient::Scalar> sum(const Logits& logits, Ids<Logits::rows> ids,
                                                const Gradient& d_logits,
                                                const typename Gradient::Scalar* class_weights = nullptr) {
    using Scalar = typename Gradient::Scalar;
    const Status status = check<Logits::cols>(ids, class_weights);
    if (status != Status::kOk) return {kNoLoss<Scalar>, 1, status};
    return {sum_of_rows(logits, ids, class_weights, d_logits, Scalar(1)), normalizer(ids, class_weights)};
  }

  /// Without reduction: losses[rows, 1], 0 for ignored targets. Same errors as forward.
  template <class Logits, class Losses>
  static Status forward_rows(const Logits& logits_matrix, Ids<kRowsOf<Logits>> ids, Losses&& losses_matrix,
                             const typename std::remove_cvref_t<Losses>::Scalar* class_weights = nullptr) {
    const auto logits = dense_view(logits_matrix);
    const auto losses = dense_view(losses_matrix);
    static_assert(detail::Holds<(losses.rows == logits.rows && losses.cols == 1)>,
                  "attune::CrossEntropy: losses must be [rows, 1]");
    using Scalar = typename decltype(losses)::Scalar;
    if (const Status status = check<logits.cols>(ids, class_weights); status != Status::kOk) return status;
    for (int i = 0; i < logits.rows; ++i) {
      const int target = ids[i];
      losses.data[i] = target == options.ignore_index
                           ? Scalar(0)
                           : row_loss<logits.cols>(logits.data + i * logits.cols, target, class_weights,
                                                   smoothing_share<logits.cols>(class_weights));
    }
    return Status::kOk;
  }
  /// d_logits[rows, classes] from d_losses[rows, 1], overwritten. `d_logits` may be `logits`.
  template <class Logits, class DLosses, class Gradient>
  static Status backward_rows(const Logits& logits_matrix, Ids<kRowsOf<Logits>> ids, const DLosses& d_losses,
                              Gradient&& gradient_matrix,
                              const typename std::remove_cvref_t<Gradient>::Scalar* class_weights = nullptr) {
    const auto logits = dense_view(logits_matrix);
    const auto gradient = dense_view(gradient_matrix);
    check_shapes<decltype(logits), decltype(gradient)>();
    if (const Status status = check<logits.cols>(ids, class_weights); status != Status::kOk) return status;
    for (int i = 0; i < logits.rows; ++i) {
      (void)row_gradient<logits.cols>(logits.data + i * logits.cols, ids[i], class_weights,
                                      smoothing_share<logits.cols>(class_weights),
                                      dense_view(d_losses).data[i], gradient.data + i * logits.cols);
    }
    return Status::kOk;
  }

 private:
  // Separate constants: outside a constant expression, clang reads another field of a template argument.
  static constexpr double kSmoothing = options.label_smoothing;
  static constexpr bool kSmooth = kSmoothing > 0;
  static constexpr double kExponent = options.noise_exponent;
  static constexpr bool kDoubts = kExponent > 0;
  template <class Scalar>
  static constexpr Scalar kNoLoss = std::numeric_limits<Scalar>::quiet_NaN();

  template <class Logits, class Gradient>
  static constexpr void check_shapes() {
    static_assert(detail::Holds<(Logits::rows == Gradient::rows && Logits::cols == Gradient::cols)>,
                  "attune::CrossEntropy: logits and gradient must have one shape, [rows, classes]");
  }

  // Whether each target is a class or ignored, and each weight is finite and not negative. Null: no weights.
  template <int kClasses, int kRows, class Scalar>
  static Status check(Ids<kRows> targets, const Scalar* class_weights) {
    for (const int target : targets) {
      if ((target < 0 || target >= kClasses) && target != options.ignore_index) return Status::kInvalidTarget;
    }
    for (int c = 0; class_weights != nullptr && c < kClasses; ++c) {
      if (!(class_weights[c] >= 0) || class_weights[c] - class_weights[c] != 0) {
        return Status::kInvalidClassWeight;
      }
    }
    return Status::kOk;
  }

  // Σ_c w_c · s/C: the smoothing term of every row, whatever its target.
  template <int kClasses, class Scalar>
  static Scalar smoothing_share(const Scalar* class_weights) {
    if (!kSmooth || class_weights == nullptr) return static_cast<Scalar>(kSmoothing);
    return kernels::multiply(kernels::sum_of<kClasses>(class_weights), kShareOf<Scalar, kClasses>);
  }
  template <class Scalar, int kClasses>
  static constexpr auto kShareOf = static_cast<Scalar>(kSmoothing / kClasses);

  // Σ_c w_c · s/C · (x_c − largest).
  template <int kClasses, class Scalar>
  static Scalar smoothed_logits(const Scalar* x, const Scalar* class_weights, Scalar largest) {
    const Scalar total = kernels::sum<Scalar, kClasses>([&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      const P centered = kernels::subtract(kernels::load<P>(x + c), kernels::broadcast<P>(largest));
      return class_weights == nullptr ? centered
                                      : kernels::multiply(centered, kernels::load<P>(class_weights + c));
    });
    return kernels::multiply(total, kShareOf<Scalar, kClasses>);
  }

  // The terms of one row's loss, from its logits minus the largest: the target's, and the smoothed sum of
  // all.
  template <class Scalar>
  struct Row {
    Scalar weight;  // (1 − s)·w of the target
    Scalar centered;
    Scalar smoothed;
  };
  template <int kClasses, class Scalar>
  static Row<Scalar> row_of(const Scalar* x, int target, const Scalar* class_weights, Scalar largest) {
    const Scalar weight = class_weights == nullptr ? Scalar(1) : class_weights[target];
    return {kernels::multiply(static_cast<Scalar>(1 - kSmoothing), weight),
            kernels::subtract(x[target], largest),
            kSmooth ? smoothed_logits<kClasses>(x, class_weights, largest) : Scalar(0)};
  }
  // p^e of the target.
  template <class Scalar>
  static Scalar confidence(const Row<Scalar>& row, Scalar log_sum) {
    return kernels::exponential(
        kernels::multiply(static_cast<Scalar>(kExponent), kernels::subtract(row.centered, log_sum)));
  }
  template <class Scalar>
  static Scalar loss_of(const Row<Scalar>& row, Scalar share, Scalar log_sum) {
    if (kDoubts) {
      const Scalar doubt = kernels::subtract(Scalar(1), confidence(row, log_sum));
      return kernels::multiply(row.weight, kernels::multiply(doubt, static_cast<Scalar>(1 / kExponent)));
    }
    const Scalar loss = kernels::multiply(row.weight, kernels::subtract(log_sum, row.centered));
    if (!kSmooth) return loss;
    return kernels::add(loss, kernels::subtract(kernels::multiply(share, log_sum), row.smoothed));
  }

  template <int kClasses, class Scalar>
  [[gnu::noinline]] static Scalar row_loss(const Scalar* x, int target, const Scalar* class_weights,
                                           Scalar share) {
    const kernels::LogSumExp<Scalar> all = kernels::log_sum_exp<kClasses>(x);
    return loss_of(row_of<kClasses>(x, target, class_weights, all.largest), share, all.log_sum);
  }

  // Returns the loss of one row and writes `factor` times its gradient. Both are zero for an ignored row.
  // `dx` may be `x`: x is read before e^(x − largest) overwrites it.
  template <int kClasses, class Scalar>
  [[gnu::noinline]] static Scalar row_gradient(const Scalar* x, int target, const Scalar* class_weights,
                                               Scalar share, Scalar factor, Scalar* dx) {
    if (target == options.ignore_index) {
      for (int c = 0; c < kClasses; ++c) dx[c] = Scalar(0);
      return Scalar(0);
    }
    const Scalar largest = kernels::largest_of<kClasses>(x);
    const Row<Scalar> row = row_of<kClasses>(x, target, class_weights, largest);
    kernels::for_each_packet<Scalar>(kClasses, [&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      const P centered = kernels::subtract(kernels::load<P>(x + c), kernels::broadcast<P>(largest));
      kernels::store(dx + c, kernels::exponential(centered));
    });
    const Scalar total = kernels::sum_of<kClasses>(dx);
    if (kDoubts) factor = kernels::multiply(factor, confidence(row, kernels::logarithm_of_sum(total)));
    const Scalar of_target = kernels::multiply(factor, row.weight);
    const Scalar scale = kernels::divide(kernels::add(of_target, kernels::multiply(factor, share)), total);
    const Scalar of_each = kernels::multiply(factor, kShareOf<Scalar, kClasses>);
    kernels::for_each_packet<Scalar>(kClasses, [&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      P gradient = kernels::multiply(kernels::load<P>(dx + c), kernels::broadcast<P>(scale));
      if (kSmooth) {
        P smoothing = kernels::broadcast<P>(of_each);
        if (class_weights != nullptr) {
          smoothing = kernels::multiply(smoothing, kernels::load<P>(class_weights + c));
        }
        gradient = kernels::subtract(gradient, smoothing);
      }
      kernels::store(dx + c, gradient);
    });
    dx[target] = kernels::subtract(dx[target], of_target);
    return loss_of(row, share, kernels::logarithm_of_sum(total));
  }

  // Σ_i w_(t_i).
  template <int kRows, class Scalar>
  static Scalar normalizer(Ids<kRows> targets, const Scalar* class_weights) {
    if (!kMeanOverBatch) return Scalar(1);
    Scalar total = 0;
    for (const int target : targets) {
      if (target != options.ignore_index) {
        total = kernels::add(total, class_weights == nullptr ? Scalar(1) : class_weights[target]);
      }
    }
    return total;
  }

  // Returns Σ_i loss_i and writes `factor` times its gradient.
  template <class Logits, class Scalar, class Gradient>
  static Scalar sum_of_rows(const Logits& logits, Ids<Logits::rows> ids, const Scalar* class_weights,
                            const Gradient& gradient, Scalar factor) {
    check_shapes<Logits, Gradient>();
    constexpr int kClasses = Logits::cols;
    const Scalar share = smoothing_share<kClasses>(class_weights);
    Scalar total = 0;
    for (int i = 0; i < Logits::rows; ++i) {
      total = kernels::add(total, row_gradient<kClasses>(logits.data + i * kClasses, ids[i], class_weights,
                                                         share, factor, gradient.data + i * kClasses));
    }
    return total;
  }

  template <class Logits, class Scalar, class Gradient>
  static LossResult<Scalar> mean(const Logits& logits, Ids<Logits::rows> ids, const Scalar* class_weights,
                                 const Gradient& gradient, Scalar weight) {
    const Status status = check<Logits::cols>(ids, class_weights);
    if (status != Status::kOk) return {kNoLoss<Scalar>, status};
    const Scalar count = normalizer(ids, class_weights);
    const Scalar factor = count > 0 ? kernels::divide(weight, count) : Scalar(0);
    return {kernels::multiply(sum_of_rows(logits, ids, class_weights, gradient, factor), factor),
            Status::kOk};
  }
};

/// CrossEntropy with a weight for each class, none negative. Pass the object with every step:
///
///   static constexpr WeightedCrossEntropy<3> kLoss{{{0.5f, 1, 4}}};   // flash
///   Trainer<Model, WeightedCrossEntropy<3>, AdamW, 32> trainer;
///   trainer.step(inputs, targets, options, NoClipping{}, NoMask{}, kLoss);
template <int classes, CrossEntropyOptions options = CrossEntropyOptions{}, class Scalar = float>
struct WeightedCrossEntropy {
  static constexpr bool kMeanOverBatch = CrossEntropy<options>::kMeanOverBatch;
  static constexpr bool kClassTargets = true;

  Tensor<Scalar, 1, classes> class_weights;  // one weight per class

  WeightedCrossEntropy() = delete;  // a step without weights does not compile
  /// Copies the weights of the classes.
  constexpr explicit WeightedCrossEntropy(const Tensor<Scalar, 1, classes>& weights)
      : class_weights(weights) {}

  /// Σ_i loss_i, its normalizer Σ_i w_(t_i), and the gradient, as CrossEntropy::sum.
  template <class Logits, class Targets, class Gradient>
  LossSum<Scalar> sum(const Logits& logits, const Targets& targets, const Gradient& d_logits) const {
    static_assert(detail::Holds<(Logits::cols == classes)>,
                  "attune::WeightedCrossEntropy: the number of weights must equal the number of classes");
    return CrossEntropy<options>::sum(logits, targets, d_logits, class_weights.data());
  }
};

}  // namespace ATTUNE_NAMESPACE
