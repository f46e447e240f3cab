// Losses that need no labels, or a few: the entropy of a model's output, and InfoMax, beside cross-entropy.
//
//   ln p = log-softmax(x),   L_i = Σ_c p_ic·(t_c − ln p_ic),   dx_ic = p_ic·(t_c − ln p_ic − L_i)
//
// With t = 0, L is the entropy: the model becomes sure (TENT, Wang et al., "Fully Test-Time Adaptation by
// Entropy Minimization", 2020, arXiv 2006.10726). It may end with one class for everything. InfoMax also
// keeps classes equally frequent (SHOT, Liang, Hu and Feng, "Do We Really Need to Access the Source Data?",
// 2020, arXiv 2002.08546): it subtracts the entropy of the batch's mean probabilities m. With t = ln m, the
// mean of L over the batch is that loss, and its gradient is the exact one:
//
//   (1/n)·Σ_i L_i = (1/n)·Σ_i H(p_i) − H(m),   m = (1/n)·Σ_i p_i
//
// m has to be known before the first backward pass, so a batch takes two passes: predictions, which a
// ClassMarginal adds up, then accumulate() with its logarithms as the target. A mean of earlier batches would
// save the first pass, but its gradient is another one, and training would have a state that a save or a
// journal lacks.
//
//   marginal.clear();
//   for (x : batch) trainer.predict(x, logits), marginal.add(logits);
//   marginal.logarithms(target);
//   for (x : batch) trainer.accumulate(x, target);
//
// SemiSupervised adds labels q of some examples (Grandvalet and Bengio, "Semi-supervised Learning by Entropy
// Minimization", 2004): their loss is L_i = −Σ_c q_ic·ln p_ic, dx_ic = p_ic·Σ_k q_ik − q_ic.
#pragma once

#include <concepts>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/log_softmax.hpp>
#include <attune/training/loss.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The common part of losses that are means over rows: Loss::of_row<classes>(x, target, dx, factor) returns
/// the loss of a row, and writes dx = factor · dL/dx.
template <class Loss>
struct MeanOverRows : LossOfSequences<Loss> {
  /// Returns the loss of y[rows, classes], times `weight`. Writes dy = weight · dL/dy. `dy` may be `y`.
  template <class Output, class Target, class Gradient>
    requires std::floating_point<typename std::remove_cvref_t<Gradient>::Scalar>
  static auto forward(const Output& y_matrix, const Target& target_matrix, Gradient&& dy_matrix,
                      typename std::remove_cvref_t<Gradient>::Scalar weight = 1) ->
      typename std::remove_cvref_t<Gradient>::Scalar {
    const auto y = dense_view(y_matrix);
    const auto target = dense_view(target_matrix);
    const auto dy = dense_view(dy_matrix);
    using Scalar = typename decltype(dy)::Scalar;
    static_assert(
        Holds<(y.rows == target.rows && y.cols == target.cols && y.rows == dy.rows && y.cols == dy.cols)>,
        "attune::Entropy: logits, target and gradient must have one shape, [rows, classes]");
    const Scalar factor(weight / y.rows);
    Scalar total(0);
    for (int i = 0; i < y.rows; ++i) {
      const int first = i * y.cols;
      total = kernels::add(
          total, Loss::template of_row<y.cols>(y.data + first, target.data + first, dy.data + first, factor));
    }
    return kernels::multiply(total, factor);
  }
};

}  // namespace detail

/// Σ_c p_c·(t_c − ln p_c) of logits, the mean over rows: with targets t = 0 the entropy, with ln m of the
/// batch InfoMax. Targets have the logits' shape.
struct Entropy : detail::MeanOverRows<Entropy> {
 private:
  friend detail::MeanOverRows<Entropy>;
  friend struct SemiSupervised;

  template <int kClasses, class Scalar>
  [[gnu::noinline]] static Scalar of_row(const Scalar* x, const Scalar* target, Scalar* dx, Scalar factor) {
    kernels::log_softmax_row<kClasses>(x, dx);
    const Scalar loss = kernels::sum<Scalar, kClasses>([&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      const P log_p = kernels::load<P>(dx + c);
      return kernels::multiply(kernels::exponential(log_p),
                               kernels::subtract(kernels::load<P>(target + c), log_p));
    });
    kernels::for_each_packet<Scalar>(kClasses, [&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      const P log_p = kernels::load<P>(dx + c);
      const P part = kernels::multiply(kernels::exponential(log_p), kernels::broadcast<P>(factor));
      const P slope = kernels::subtract(kernels::load<P>(target + c), log_p);
      kernels::store(dx + c, kernels::multiply(part, kernels::subtract(slope, kernels::broadcast<P>(loss))));
    });
    return loss;
  }
};

/// Cross-entropy of labeled examples, Entropy of the others, the mean over rows. A row of targets with a
/// positive entry is a label: a probability of each class. Any other row is Entropy's target: 0, or ln m of
/// the unlabeled examples. Targets have the logits' shape.
struct SemiSupervised : detail::MeanOverRows<SemiSupervised> {
 private:
  friend detail::MeanOverRows<SemiSupervised>;

  template <int kClasses, class Scalar>
  static Scalar of_row(const Scalar* x, const Scalar* target, Scalar* dx, Scalar factor) {
    bool labeled = false;
    for (int c = 0; c < kClasses; ++c) labeled = labeled || target[c] > 0;
    return labeled ? of_labeled_row<kClasses>(x, target, dx, factor)
                   : Entropy::of_row<kClasses>(x, target, dx, factor);
  }
  template <int kClasses, class Scalar>
  [[gnu::noinline]] static Scalar of_labeled_row(const Scalar* x, const Scalar* label, Scalar* dx,
                                                 Scalar factor) {
    kernels::log_softmax_row<kClasses>(x, dx);
    const Scalar share = kernels::sum_of<kClasses>(label);
    const Scalar loss = kernels::sum<Scalar, kClasses>([&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      return kernels::multiply(kernels::load<P>(label + c), kernels::load<P>(dx + c));
    });
    kernels::for_each_packet<Scalar>(kClasses, [&]<class P>(int c) ATTUNE_INLINE_LAMBDA {
      const P p = kernels::exponential(kernels::load<P>(dx + c));
      const P slope =
          kernels::subtract(kernels::multiply(p, kernels::broadcast<P>(share)), kernels::load<P>(label + c));
      kernels::store(dx + c, kernels::multiply(slope, kernels::broadcast<P>(factor)));
    });
    return -loss;
  }
};

/// The mean probabilities of classes over a batch. A plain value; zero-initialized, it is empty.
template <int num_classes, class ScalarType = float>
class ClassMarginal {
 public:
  using Scalar = ScalarType;
  /// An output, or logarithms of probabilities.
  using Logits = Tensor<Scalar, 1, num_classes>;

  /// Forgets the batch.
  void clear() {
    sums_.set_zero();
    count_ = 0;
  }
  /// Adds an output, logits[1, num_classes]. Returns kNotFinite with nothing added.
  Status add(ConstView<Logits> logits) {
    Logits log_p;
    kernels::log_softmax_row<num_classes>(logits.data, log_p.data());
    if (!kernels::finite(num_classes, log_p.data())) return Status::kNotFinite;
    for (int c = 0; c < num_classes; ++c) sums_(0, c) += kernels::exponential(log_p(0, c));
    ++count_;
    return Status::kOk;
  }
  /// The number of outputs.
  [[nodiscard]] int count() const { return count_; }
  /// Writes ln m, the target of Entropy for InfoMax; from ln 10⁻³⁰ to 0. Returns kNoTargets without an
  /// output.
  Status logarithms(View<Logits> to) const {
    if (count_ == 0) return Status::kNoTargets;
    for (int c = 0; c < num_classes; ++c) {
      const Scalar mean = sums_(0, c) / static_cast<Scalar>(count_);
      to(0, c) = kernels::logarithm(detail::clamp(mean, Scalar(1e-30), Scalar(1)));
    }
    return Status::kOk;
  }

 private:
  Logits sums_{};
  int count_ = 0;
};

}  // namespace ATTUNE_NAMESPACE
