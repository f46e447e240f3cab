// Inference in slices (slices.hpp): a prediction that lets a main loop meet its deadlines, or runs between
// two slices of training.
//
//   static Model::InferenceScratch scratch;
//   auto prediction = attune::infer_in_slices<Model>(trainer.parameters(), x, y, scratch);
//   while (prediction.advance()) serve_what_is_due();
//   if (prediction.status() == attune::Status::kOk) …
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/execution/slices.hpp>

namespace ATTUNE_NAMESPACE {

/// A forward pass in progress, bit-identical to infer<Model>(parameters, x, y, scratch, mask, Products{}).
/// Its arguments must not change until it is done.
template <class Model, class Set, class Mask, int most_work, class Products = FloatProducts>
class InferenceInSlices {
 public:
  /// Begins a prediction y of x without computing anything. All arguments must outlive it.
  InferenceInSlices(const Set& parameters, ConstView<typename Model::Input> x, View<typename Model::Output> y,
                    typename Model::InferenceScratch& scratch, const Mask& mask)
      : parameters_(&parameters), x_(x), y_(y), scratch_(&scratch), mask_(mask) {}

  /// Computes the next slice. Returns false if there was none.
  bool advance() {
    if (done_) return false;
    detail::SliceWalk walk(address_, most_work);
    const auto context = detail::context_with<Model, Products>(mask_, OneSlice<most_work>(walk));
    status_ = context.inside([&]() ATTUNE_INLINE_LAMBDA {
      return detail::forward_status<Model>(context, *parameters_, x_, y_, *scratch_);
    });
    detail::clear_behind(context, y_);
    done_ = walk.complete() || status_ != Status::kOk;
    return true;
  }
  [[nodiscard]] bool done() const { return done_; }
  /// kUnderWay until the prediction is done; then kOk, or kInvalidToken if an id is outside the vocabulary.
  Status status() const { return done() ? status_ : Status::kUnderWay; }

 private:
  const Set* parameters_;
  ConstView<typename Model::Input> x_;
  View<typename Model::Output> y_;
  typename Model::InferenceScratch* scratch_;
  [[no_unique_address]] Mask mask_;
  SliceAddress address_;
  Status status_ = Status::kOk;
  bool done_ = false;
};

/// Begins a prediction y[rows, cols] of x[rows, cols] without computing anything. Mask and products
/// are infer()'s. Parameters of a trainer are floats: with Int8Training, predict() has other bits.
template <class Model, int most_work = kSliceWork, class Set, class X, class Y, class Mask = NoMask,
          class Products = FloatProducts>
[[nodiscard]] InferenceInSlices<Model, std::remove_const_t<std::remove_reference_t<Set>>, Mask, most_work,
                                Products>
infer_in_slices(Set&& parameters, X&& x, Y&& y, typename Model::InferenceScratch& scratch,
                const Mask& mask = {}, const Products& = {}) {
  detail::check_no_trainer<std::remove_reference_t<Set>>();
  static_assert(detail::Holds<std::is_lvalue_reference_v<Set>>,
                "attune: a pass in slices reads its parameters until it ends, and these are a temporary; "
                "store them in a variable");
  detail::check_stays<X>();
  detail::check_stays<Y>();
  return {parameters, ConstView<typename Model::Input>(x), View<typename Model::Output>(y), scratch, mask};
}

}  // namespace ATTUNE_NAMESPACE
