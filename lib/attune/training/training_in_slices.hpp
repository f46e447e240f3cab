// A training step in slices, for a main loop with deadlines. Between slices the loop can serve events,
// predict with its own scratch (infer_in_slices), or save the trainer's state. An update's last slices change
// the parameters. Between them the state is incomplete: a FlashStore then returns kUnderWay and keeps its
// last save.
//
//   auto pass = trainer.accumulate_in_slices(x, target);
//   while (pass.advance()) serve_what_is_due();
//   if (!pass.result().ok()) …                                    // as accumulate() answers
//   auto update = trainer.update_in_slices({.learning_rate = 1e-3f});
//   while (update.advance()) serve_what_is_due();
//   if (!update.result().ok()) …                                  // as update() answers
//   auto prediction = trainer.predict_in_slices(x, y);
//   while (prediction.advance()) serve_what_is_due();
//   if (prediction.status() != attune::Status::kOk) …             // as predict() answers
//
// The bits equal accumulate(), update() and predict(). Each call of advance() resumes at the end of the slice
// before it (execution/slices.hpp). During a pass, other calls that need its memory return kUnderWay.
// discard(), initialize(), load() and resume() end it. A pass is a plain value: keep it in a static, and
// assign the next one to it.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <attune/core/status.hpp>
#include <attune/execution/slices.hpp>
#include <attune/training/batch_update.hpp>
#include <attune/training/forward_loss.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// A pass of a trainer, which has the trainer's memory until its end.
template <class Trainer>
class PassInSlices {
 public:
  /// Whether nothing is left to do, also after a discard() or restart of the trainer.
  [[nodiscard]] bool done() const { return !trainer_->work_.lock().under_way(pass_); }

 protected:
  PassInSlices(Trainer& trainer, Status may)
      : trainer_(&trainer), status_(may == Status::kOk ? Status::kUnderWay : may) {
    if (may == Status::kOk) pass_ = trainer.work_.lock().begin_pass(&trainer);
  }
  void end(Status status) {
    status_ = status;
    trainer_->work_.lock().end_pass(trainer_);
  }

  Trainer* trainer_;
  SliceAddress address_;
  Status status_;  // kUnderWay before the end of the pass, and if another call ended it

 private:
  std::uint32_t pass_ = 0;  // no pass
};

}  // namespace detail

/// One sequence in slices: forward, loss and backward of the model, or of a part of it.
template <class Trainer, class Loss, class Mask, int most_work, class Computed, class InputView>
class AccumulationInSlices : public detail::PassInSlices<Trainer> {
  using Pass = detail::PassInSlices<Trainer>;
  using Pass::trainer_, Pass::address_, Pass::status_;

 public:
  using Scalar = typename Trainer::Scalar;

  /// Computes the next slice; false if none is left.
  bool advance() {
    if (Pass::done()) return false;
    detail::SliceWalk walk(address_, most_work);
    const Status status = trainer_->template add_sequence<Computed>(
        x_, target_, loss_, detail::Unused{}, added_,
        Trainer::template context_of<Computed>(mask_, OneSlice<most_work>(walk)));
    if (status != Status::kOk || Pass::done()) Pass::end(status);
    return true;
  }
  /// The result of accumulate(). kUnderWay before the end of the pass, and if another call ended it.
  [[nodiscard]] LossResult<Scalar> result() const { return Trainer::own_loss(status_, added_); }

 private:
  friend Trainer;

  AccumulationInSlices(Trainer& trainer, InputView x, typename Trainer::TargetView target, const Mask& mask,
                       const Loss& loss, Status may)
      : Pass(trainer, may), x_(x), target_(target), mask_(mask), loss_(loss) {}

  InputView x_;
  typename Trainer::TargetView target_;
  [[no_unique_address]] Mask mask_;
  [[no_unique_address]] Loss loss_;
  LossSum<Scalar> added_{};
};

/// An optimizer step in slices.
template <class Trainer, class Optimizer, class Clipping, int most_work>
class UpdateInSlices : public detail::PassInSlices<Trainer> {
  using Pass = detail::PassInSlices<Trainer>;
  using Pass::trainer_, Pass::address_, Pass::status_;

 public:
  using Result = typename Trainer::Result;

  /// Computes the next slice; false if none is left.
  bool advance() {
    if (Pass::done()) return false;
    if (!trainer_->has_gradients()) {  // another trainer has taken them since the last slice
      if (trainer_->updating()) trainer_->sums_.clear();  // its state stays a part of an update
      Pass::end(Status::kUnderWay);
      return true;
    }
    detail::SliceWalk walk(address_, most_work);
    const NoMask mask;
    const Context context(mask, OneSlice<most_work>(walk));
    using Scalar = typename Trainer::Scalar;
    if constexpr (requires { clipping_.template norm_of<Scalar>(norm_); }) {
      if (clipping_.check() == Status::kOk) {
        clipping_.template norm_in_portions<Scalar>(trainer_->gradients(), norm_, context);
      }
      const auto norm = [this] { return clipping_.template norm_of<Scalar>(norm_); };
      trainer_->finish(options_, clipping_, norm, update_, context);
    } else {
      const auto norm = [this] { return clipping_.template norm<Scalar>(trainer_->gradients()); };
      trainer_->finish(options_, clipping_, norm, update_, context);
    }
    if (Pass::done()) Pass::end(update_.result.status);
    return true;
  }
  /// The result of update(). kUnderWay before the end of the pass, and if another call ended it.
  [[nodiscard]] Result result() const {
    return status_ == Status::kOk ? update_.result : Result::refused(status_);
  }

 private:
  friend Trainer;

  UpdateInSlices(Trainer& trainer, const typename Trainer::Options& options, const Clipping& clipping,
                 Status may)
      : Pass(trainer, may), options_(options), clipping_(clipping) {}

  typename Trainer::Options options_;
  [[no_unique_address]] Clipping clipping_;
  detail::NormInPortions<typename Trainer::Scalar> norm_{};
  detail::BatchUpdate<Optimizer> update_{};
};

/// A prediction in slices, in the trainer's tape and scratch. Its forward pass is the one that trains:
/// without dropout, a program that predicts like this has no second one in its flash.
template <class Trainer, class Mask, int most_work>
class PredictionInSlices : public detail::PassInSlices<Trainer> {
  using Pass = detail::PassInSlices<Trainer>;
  using Pass::trainer_, Pass::address_, Pass::status_;

 public:
  /// Computes the next slice; false if none is left.
  bool advance() {
    if (Pass::done()) return false;
    detail::SliceWalk walk(address_, most_work);
    const Status status =
        trainer_->predict_in(Trainer::context_of(mask_, OneSlice<most_work>(walk)), x_, y_, mask_);
    if (status != Status::kOk || walk.complete()) Pass::end(status);
    return true;
  }
  /// The result of predict(). kUnderWay before the end of the pass, and if another call ended it.
  [[nodiscard]] Status status() const { return status_; }

 private:
  friend Trainer;

  PredictionInSlices(Trainer& trainer, typename Trainer::InputView x, typename Trainer::OutputView y,
                     const Mask& mask, Status may)
      : Pass(trainer, may), x_(x), y_(y), mask_(mask) {}

  typename Trainer::InputView x_;
  typename Trainer::OutputView y_;
  [[no_unique_address]] Mask mask_;
};

}  // namespace ATTUNE_NAMESPACE
