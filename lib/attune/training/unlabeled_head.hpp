// A head that learns from examples without labels: forward passes, balanced labels and a solve, a few times.
//
//   1. logits of every example, from the head so far
//   2. labels from the logits, classes as in a prior (balanced_labels.hpp)
//   3. the head of these labels, close to the base (closed_form_head.hpp)
//   4. a guard; if it objects, the last head stays
//
// The guard needs no labels. An example is clear if the base is sure of its class. Before learning, the guard
// counts clear examples and the base's classes. Later it compares each head with the base on clear examples,
// and evaluates a probe of factory examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/training/balanced_labels.hpp>
#include <attune/training/closed_form_head.hpp>
#include <attune/training/guarded_training.hpp>

namespace ATTUNE_NAMESPACE {

/// Why a guard ended learning without labels.
enum class Objection : std::uint8_t {
  kNone = 0,          // all rounds passed
  kUnsure = 1,        // too few clear examples: noise, silence, another sensor
  kNothingNew = 2,    // almost all examples are clear
  kImbalance = 3,     // classes are not as frequent as the prior says
  kDisagreement = 4,  // a head gives clear examples other classes than the base
  kForgetting = 5,    // a head recognizes fewer factory examples
};
/// Bounds of the guard, each in [0, 1]. The defaults suit 50 or more examples. With fewer, shares vary by
/// chance.
template <class Scalar = float>
struct UnlabeledGuard {
  Scalar sure = Scalar(0.8);  // an example is clear if the base gives a class at least this probability
  Scalar least_clear = Scalar(0.4);         // bounds of UnlabeledResult::clear
  Scalar most_clear = Scalar(0.95);         // from here on there is nothing to learn
  Scalar largest_imbalance = Scalar(0.25);  // bound of UnlabeledResult::imbalance
  Scalar least_agreement = Scalar(0.85);    // bound of UnlabeledResult::agreement
  Scalar largest_drop = Scalar(0.05);       // accuracy lost on the probe
};
/// The outcome of UnlabeledHead::learn().
template <class Scalar = float>
struct UnlabeledResult {
  Status status = Status::kOk;
  Objection objection = Objection::kNone;  // of the guard, which ended learning
  int rounds = 0;                          // whose heads passed the guard; 0: the head is the base's
  Scalar clear = 0;                        // share of clear examples
  Scalar agreement = 0;  // share of clear examples to which the last head tried gives the base's class
  Scalar imbalance =
      0;  // Σ|f − prior|/2, f: the base's class frequencies. In [0, 1], large if the prior is wrong

  /// Whether the examples could be used.
  [[nodiscard]] constexpr bool ok() const { return status == Status::kOk; }
};

/// Memory of learning from at most `max_examples` examples; dead between two calls.
template <int num_features, int num_classes, int max_examples, class ScalarType = float>
class UnlabeledHead {
  static_assert(detail::Holds<(max_examples > 0)>,
                "attune::UnlabeledHead: room for at least one example is required");
  static_assert(detail::Holds<(num_classes <= 32767)>, "attune::UnlabeledHead: at most 32767 classes");
  static constexpr std::size_t kCapacity = max_examples;

 public:
  using Scalar = ScalarType;
  /// Solves for heads.
  using Sums = ClosedFormHead<num_features, num_classes, Scalar>;
  /// The layer of the computed parameters.
  using Head = typename Sums::Head;
  /// The features of one example, [1, num_features].
  using Features = typename Sums::Features;
  struct Options {
    LabelBalance<num_classes, Scalar> balance{};  // prior of the classes
    typename Sums::Options head{};                // of the solver
    UnlabeledGuard<Scalar> guard{};               // bounds
    int rounds = 4;                               // in [1, 100]
  };

  /// Learns from `count` examples, and writes the head to `head`, of Head's tensors. If the guard rejects all
  /// heads, or on an error, `head` becomes `base`. `base` must have all classes and a bias. It may be in any
  /// storage, but not `head`. `factory` is as for ClosedFormHead::solve(). `known` has a label for each
  /// example, or kUnlabeled. Empty, there are none. The callbacks are
  ///
  ///   Status features(int i, Features& to);                    // of example i, stored or computed again
  ///   Evaluation<Scalar> probe(const Head::Parameters& head);  // on factory examples, or empty
  ///
  /// features() is called for all examples in order, in 1 + 2·rounds passes. Errors: kInvalidLength for
  /// `count` or the size of `known`, kInvalidWeightDecay for options, and any error of balanced_labels(),
  /// ClosedFormHead or features().
  template <class Base, int factory_classes, class GetFeatures, class Probe, class HeadParameters>
  UnlabeledResult<Scalar> learn(const Base& base,
                                const ClosedFormHead<num_features, factory_classes, Scalar>& factory,
                                int count, const GetFeatures& features, const Probe& probe,
                                HeadParameters& head, std::span<const int> known = {},
                                const Options& options = {}) {
    if constexpr (check_base<Base>() && check_features<GetFeatures>()) {
      copy_parameters(base, candidate_);
      copy_parameters(base, head);
      UnlabeledResult<Scalar> result;
      if (count <= 0 || count > max_examples) return {Status::kInvalidLength};
      if (!known.empty() && known.size() != static_cast<std::size_t>(count)) return {Status::kInvalidLength};
      if (const Status status = check(options); status != Status::kOk) return {status};
      result.status = infer(candidate_, count, features);
      if (result.status != Status::kOk) return result;
      note_clear(count, options, result);
      result.objection = objection_to(result, options.guard);
      if (result.objection != Objection::kNone) return result;
      const Evaluation<Scalar> probe_before = probe(candidate_);
      for (int pass = 1; pass <= options.rounds; ++pass) {
        result.status = solve(base, factory, count, features, known, options);
        if (result.status == Status::kOk) result.status = infer(candidate_, count, features);
        if (result.status != Status::kOk) {
          copy_parameters(base, head);
          result.rounds = 0;
          return result;
        }
        result.agreement = agreement(count);
        const Evaluation<Scalar> after = probe(candidate_);
        if (result.agreement < options.guard.least_agreement) result.objection = Objection::kDisagreement;
        if (probe_before.accuracy() - after.accuracy() > options.guard.largest_drop) {
          result.objection = Objection::kForgetting;
        }
        if (result.objection != Objection::kNone) return result;
        copy_parameters(candidate_, head);
        result.rounds = pass;
      }
      return result;
    }
  }
  /// The same without sums of the factory and a probe.
  template <class Base, class GetFeatures, class HeadParameters>
  UnlabeledResult<Scalar> learn(const Base& base, int count, const GetFeatures& features,
                                HeadParameters& head, std::span<const int> known = {},
                                const Options& options = {}) {
    Options without_factory = options;
    without_factory.head.rehearsal = 0;
    const auto no_probe = [](const typename Head::Parameters&) { return Evaluation<Scalar>{}; };
    return learn(base, sums_, count, features, no_probe, head, known, without_factory);
  }

 private:
  using Logits = typename Head::Output;

  template <class GetFeatures>
  static constexpr bool check_features() {
    constexpr bool kAnswers = std::is_invocable_r_v<Status, const GetFeatures&, int, Features&>;
    static_assert(
        detail::Holds<kAnswers>,
        "attune::UnlabeledHead: features(int i, Features& to) writes the features of example i, and "
        "returns a Status");
    return kAnswers;
  }
  template <class Base>
  static constexpr bool check_base() {
    constexpr bool kIsHead = requires(const Base& base) {
      decltype(base.bias)::cols;
      requires decltype(base.weight)::rows == num_features&& decltype(base.weight)::cols == num_classes;
    };
    static_assert(detail::Holds<kIsHead>,
                  "attune::UnlabeledHead: the base must be the parameters of a Linear with a bias, with the "
                  "features and all classes of the head");
    return kIsHead;
  }
  static Status check(const Options& options) {
    bool valid = options.rounds >= 1 && options.rounds <= 100;
    const UnlabeledGuard<Scalar>& guard = options.guard;
    for (const Scalar share : {guard.sure, guard.least_clear, guard.most_clear, guard.largest_imbalance,
                               guard.least_agreement, guard.largest_drop}) {
      valid = valid && share >= 0 && share <= 1;
    }
    return valid ? options.balance.check() : Status::kInvalidWeightDecay;
  }
  // Before the first head.
  static Objection objection_to(const UnlabeledResult<Scalar>& result, const UnlabeledGuard<Scalar>& guard) {
    if (result.clear < guard.least_clear) return Objection::kUnsure;
    if (result.clear > guard.most_clear) return Objection::kNothingNew;
    return result.imbalance > guard.largest_imbalance ? Objection::kImbalance : Objection::kNone;
  }
  [[nodiscard]] std::span<Scalar> labels(int count) {
    return {labels_, static_cast<std::size_t>(count) * num_classes};
  }
  // Writes the logits of all examples.
  Status infer(const typename Head::Parameters& head, int count, const auto& features) {
    Features z;
    Logits logits;
    typename Head::InferenceScratch scratch;
    for (int i = 0; i < count; ++i) {
      if (const Status status = features(i, z); status != Status::kOk) return status;
      Head::forward(head, z, logits, scratch);
      if (!kernels::finite(num_classes, logits.data())) return Status::kNotFinite;
      for (int c = 0; c < num_classes; ++c) labels_[i * num_classes + c] = logits(0, c);
    }
    return Status::kOk;
  }
  [[nodiscard]] int likeliest(int i) const {
    const Scalar* const row = labels_ + i * num_classes;
    int likeliest = 0;
    for (int c = 1; c < num_classes; ++c) likeliest = row[c] > row[likeliest] ? c : likeliest;
    return likeliest;
  }
  // Of the base's logits: which examples it is sure of, and how frequent its classes are.
  void note_clear(int count, const Options& options, UnlabeledResult<Scalar>& result) {
    constexpr Scalar kNone[std::size_t{num_classes}] = {};
    Scalar frequency[std::size_t{num_classes}] = {};
    int sure = 0;
    for (int i = 0; i < count; ++i) {
      const int best = likeliest(i);
      const Scalar all =
          detail::shifted_exponentials<num_classes>(labels_ + i * num_classes, kNone, [](int, Scalar) {});
      const bool is_sure = 1 / all >= options.guard.sure;
      sure_class_[i] = static_cast<std::int16_t>(is_sure ? best : -1);
      sure += is_sure;
      frequency[best] += 1;
    }
    result.clear = static_cast<Scalar>(sure) / static_cast<Scalar>(count);
    for (int c = 0; c < num_classes; ++c) {
      const Scalar prior = options.balance.prior[static_cast<std::size_t>(c)];
      result.imbalance += detail::larger(frequency[c] / static_cast<Scalar>(count) - prior, Scalar(0));
    }
  }
  [[nodiscard]] Scalar agreement(int count) const {
    int sure = 0, same = 0;
    for (int i = 0; i < count; ++i) {
      if (sure_class_[i] < 0) continue;
      ++sure;
      same += likeliest(i) == sure_class_[i];
    }
    return sure > 0 ? static_cast<Scalar>(same) / static_cast<Scalar>(sure) : Scalar(1);
  }
  // The head of balanced labels, from logits.
  Status solve(const auto& base, const auto& factory, int count, const auto& features,
               std::span<const int> known, const Options& options) {
    Status status = balanced_labels<num_classes, Scalar>(labels(count), options.balance, known);
    sums_.clear();
    Features z;
    typename Sums::SoftLabels of_example;
    for (int i = 0; i < count && status == Status::kOk; ++i) {
      status = features(i, z);
      for (int c = 0; c < num_classes; ++c) of_example(0, c) = labels_[i * num_classes + c];
      if (status == Status::kOk) status = sums_.add(z, of_example);
    }
    return status == Status::kOk ? sums_.solve(base, factory, candidate_, scratch_, options.head) : status;
  }

  Sums sums_{};
  typename Sums::Scratch scratch_{};
  typename Head::Parameters candidate_{};
  Scalar labels_[kCapacity * num_classes]{};  // logits, then labels
  std::int16_t sure_class_[kCapacity]{};      // of the base; -1: it is not sure
};

}  // namespace ATTUNE_NAMESPACE
