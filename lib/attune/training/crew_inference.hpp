// Inference on a crew (execution/crew.hpp): all members compute one sequence, or one sequence of a batch
// each.
//
//   static attune::TwoCores<SecondCore> cores;
//   static attune::CrewInference<decltype(cores), Model> inference;
//   cores.start();
//   inference.infer(cores, parameters, x, y, attune::CausalMask{});
//
// The bits equal attune::infer's. A batch is faster than its sequences one by one, because members then do
// not wait for each other.
#pragma once

#include <attune/execution/crew.hpp>
#include <attune/execution/crew_slices.hpp>
#include <attune/execution/pass.hpp>
#include <attune/training/batch.hpp>

namespace ATTUNE_NAMESPACE {

/// The inference scratch of every member. Static storage, all zeros.
template <detail::CheckedCrew Members, detail::CheckedLayer Model>
class CrewInference {
  template <int count>
  using Inputs = detail::Stacked<typename Model::Input, count>;
  using Output = typename Model::Output;

 public:
  /// y[rows, cols] from x[rows, cols], as attune::infer. `y` may not overlap `x`.
  template <class Set = typename Model::Parameters, class Mask = NoMask, class Products = FloatProducts>
  detail::ForwardResult<Model> infer(Members& crew, const Set& parameters, ConstView<typename Model::Input> x,
                                     View<Output> y, const Mask& mask = {}, const Products& = {}) {
    return detail::ForwardResult<Model>(pass_.run(crew, scratch_, [&](const auto& slices) {
      (void)detail::forward_pass<Model>(detail::context_with<Model, Products>(mask, slices), parameters, x, y,
                                        scratch_[0]);
    }));
  }
  /// The same for `count` sequences, stacked. `masks` is one mask for all, or a std::array or std::span with
  /// one for each. Outputs of refused sequences are not written. Returns the first error.
  template <int count, class Set = typename Model::Parameters, class Masks = NoMask,
            class Products = FloatProducts>
  detail::ForwardResult<Model> infer_batch(
      Members& crew, const Set& parameters, typename Inputs<count>::View inputs,
      MatrixView<typename Model::Scalar, count * Output::rows, Output::cols> outputs, const Masks& masks = {},
      const Products& = {}) {
    detail::check_masks<Model, Masks, count>();
    Status statuses[std::size_t{count}];
    crew.for_each(count, [&](int member, int sequence) {
      statuses[sequence] = detail::forward_pass<Model>(
          detail::context_with<Model, Products>(detail::mask_of(masks, sequence)), parameters,
          Inputs<count>::at(inputs, sequence),
          outputs.template rows_at<Output::rows>(sequence * Output::rows), scratch_[member]);
    });
    for (const Status status : statuses) {
      if (status != Status::kOk) return detail::ForwardResult<Model>(status);
    }
    return detail::ForwardResult<Model>(Status::kOk);
  }

 private:
  typename Model::InferenceScratch scratch_[std::size_t{Members::kMembers}];
  CrewPass<Members> pass_;
};

}  // namespace ATTUNE_NAMESPACE
