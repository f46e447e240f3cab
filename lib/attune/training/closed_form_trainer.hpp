// A trainer without backward and without steps: its head is in closed form (closed_form_head.hpp). Each
// example adds to sums; an update computes the head of all examples so far.
//
//   using Trained = attune::LinearProbe<Model, kBase>;   // kBase: all of Model's parameters, in flash
//   attune::ClosedFormTrainer<Trained, attune::LinearProbeFeatures<Model, kBase>> trainer;
//   trainer.initialize(attune::XavierUniform{}, attune::Rng{1});   // kBase's head, and no examples
//   trainer.accumulate(x, label);                                  // a forward pass up to the head
//   trainer.update({.ridge = 10});
//
// RAM: two copies of the sums, (features + 1)·(features + 1 + classes) numbers, or the scratch of inference
// if that is larger than one of them; and the head. The state holds the sums: a training that resumes knows
// its examples.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/execution/pass.hpp>
#include <attune/training/batch.hpp>
#include <attune/training/closed_form_head.hpp>
#include <attune/training/forward_loss.hpp>
#include <attune/training/lifecycle.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Stands for the optimizer in the state of such a training.
template <class Sums>
struct ClosedForm {
  using Scalar = typename Sums::Scalar;
  static constexpr std::uint32_t kFingerprint = fingerprint("ClosedForm");
  /// The examples.
  template <class>
  struct Moments {
    Sums sums;
    void reset() { sums.clear(); }
  };
};

/// Whether a Sequential ends with a layer that a ClosedFormHead can be: Linear of one row, with a bias,
/// behind other layers.
template <class Model>
concept EndsWithHead = requires(typename Model::template Layer<Model::kLayers - 1> last,
                                typename decltype(last)::Parameters head) {
  head.weight(0, 0);
  head.bias(0, 0);
  requires(Model::kLayers > 1);
  requires decltype(last)::Input::rows == 1 && decltype(last)::Output::rows == 1;
  requires decltype(last)::Output::cols > 1 && decltype(head.weight)::rows == decltype(last)::Input::cols;
  requires sizeof head == sizeof head.weight + sizeof head.bias;
};
/// Whether Features are the layers before the head of Trained, and only the head is trained.
template <class Trained, class Features>
concept FeaturesOfHead = requires(typename Trained::template Layer<Trained::kLayers - 1> head) {
  requires std::is_same_v<typename Features::Input, typename Trained::Input>;
  requires std::is_same_v<typename Features::Output, typename decltype(head)::Input>;
  requires std::is_empty_v<typename Features::Parameters> && kHasConstants<decltype(head)>;
  requires sizeof(typename Trained::Parameters) == sizeof(typename decltype(head)::Parameters);
};
template <class Trained, class Features>
constexpr bool check_closed_form() {
  static_assert(Holds<EndsWithHead<Trained>>,
                "attune::ClosedFormTrainer: the model must end with a Linear of one row with a bias; train "
                "another one with attune::Trainer");
  static_assert(Holds<(!EndsWithHead<Trained> || FeaturesOfHead<Trained, Features>)>,
                "attune::ClosedFormTrainer: give LinearProbe<Model, kConstants> and "
                "LinearProbeFeatures<Model, kConstants> of one model");
  return EndsWithHead<Trained> && FeaturesOfHead<Trained, Features>;
}
template <class Trained, class Features>
concept SolvesHead = check_closed_form<Trained, Features>();
/// The sums over examples of such a model.
template <class Trained, class Head = typename Trained::template Layer<Trained::kLayers - 1>>
using HeadSumsOf = ClosedFormHead<Head::Input::cols, Head::Output::cols, typename Trained::Scalar>;

/// The features of x[rows, cols] or ids, which the head reads.
template <class FeatureLayers, class Mask>
Status features_of(ConstView<typename FeatureLayers::Input> x, View<typename FeatureLayers::Output> features,
                   const Mask& mask, typename FeatureLayers::InferenceScratch& scratch) {
  return forward_pass<FeatureLayers>(context_for<FeatureLayers>(mask), typename FeatureLayers::Parameters{},
                                     x, features, scratch);
}

}  // namespace detail

/// Learns the last layer of `Trained`, a LinearProbe (models/linear_probe.hpp), in closed form, from examples
/// with one class each. The learned head stays close to the head of the constants. `FeatureLayers` are the
/// LinearProbeFeatures of the same model and constants.
template <detail::CheckedLayer Trained, detail::CheckedLayer FeatureLayers>
  requires detail::SolvesHead<Trained, FeatureLayers>
class ClosedFormTrainer
    : public TrainingLifecycle<ClosedFormTrainer<Trained, FeatureLayers>,
                               TrainingState<Trained, detail::ClosedForm<detail::HeadSumsOf<Trained>>>> {
  static constexpr int kHead = Trained::kLayers - 1;

 public:
  using Scalar = typename Trained::Scalar;          // the type of its numbers
  using Parameters = typename Trained::Parameters;  // the head
  /// Sums over examples. One that is filled on the PC stands for the factory's.
  using Sums = detail::HeadSumsOf<Trained>;
  using State = TrainingState<Trained, detail::ClosedForm<Sums>>;  // the head, and the sums so far
  using InputView = ConstView<typename Trained::Input>;            // one sequence
  using TargetView = ConstView<std::array<int, 1>>;                // its class
  using OutputView = View<typename Trained::Output>;               // logits
  using Options = typename Sums::Options;                          // of the solution
  using Result = LossResult<Scalar>;  // a Status; the loss is 0, or NaN on an error

  /// Adds an example: x[rows, cols] or ids, and its class. On an error (an invalid token or class, features
  /// that are not finite) nothing is added. There is no loss: it is 0.
  template <class Mask = NoMask>
  Result accumulate(InputView x, TargetView label, const Mask& mask = {}) {
    auto& pass = scratch_.pass;
    Status status = state_.ready();
    if (status == Status::kOk) {
      status = detail::features_of<FeatureLayers>(x, pass.features, mask, pass.scratch);
    }
    if (status == Status::kOk) status = state_.moments.sums.add(pass.features, label[0]);
    return result(status);
  }
  /// Computes the head of all examples so far. With an error of ClosedFormHead::solve(), the head stays.
  Result update(const Options& options = {}) {
    Options without_factory = options;
    without_factory.rehearsal = 0;
    return update(without_factory, state_.moments.sums);
  }
  /// The same: no number of examples is a batch.
  Result update_incomplete(const Options& options = {}) { return update(options); }
  /// The same, and remembers the outputs on the examples of `factory`.
  template <int factory_classes>
  Result update(const Options& options,
                const ClosedFormHead<Sums::Features::cols, factory_classes, Scalar>& factory) {
    Status status = state_.ready();
    if (status == Status::kOk) {
      status =
          state_.moments.sums.solve(Trained::template Layer<kHead>::constants(), factory,
                                    state_.parameters.template layer<kHead>(), scratch_.solution, options);
    }
    if (status == Status::kOk) detail::count_step(state_, 0);
    return result(status);
  }

  /// A number in place of options is a compile error.
  Result update(detail::PlainNumber auto number, const auto&...) {
    (void)detail::number_for_options<Scalar>(number);
    return {};
  }

  /// y[rows, cols] for x with the head so far. Returns a Status as Trainer::predict. `y` may not overlap `x`.
  template <class Mask = NoMask>
  Status predict(InputView x, OutputView y, const Mask& mask = {}) {
    return detail::predict_without_tape<Trained>(state_, x, y, mask, scratch_.inference);
  }

  /// RAM of training. object() is sizeof(ClosedFormTrainer); `moments` are the sums, and `inputs` one
  /// example.
  [[nodiscard]] static constexpr MemoryReport memory() {
    return detail::report_of(sizeof(ClosedFormTrainer),
                             {.parameters = sizeof(Parameters),
                              .moments = sizeof(Sums),
                              .scratch = sizeof scratch_,
                              .inputs = sizeof(typename Trained::Input) + sizeof(std::array<int, 1>)});
  }

 private:
  friend TrainingLifecycle<ClosedFormTrainer, State>;

  static Result result(Status status) {
    return {status == Status::kOk ? Scalar(0) : std::numeric_limits<Scalar>::quiet_NaN(), status};
  }

  struct Pass {
    [[no_unique_address]] typename FeatureLayers::InferenceScratch scratch;
    typename FeatureLayers::Output features;
  };
  union Scratch {
    Pass pass;
    typename Trained::InferenceScratch inference;
    typename Sums::Scratch solution;
  };

  State state_{};
  Scratch scratch_{};
};

}  // namespace ATTUNE_NAMESPACE
