// Runs a layer without lanes among layers in lockstep (training/lockstep.hpp): a layer of token ids, your own
// layer, or one with sums over more tokens than lanes sum in one sequence's order.
//
// Each sequence is copied out of its lane, the unchanged layer runs, and its output is copied back. So
// parameters and gradients are numbers, not lanes. Sequences add to the gradients in their order.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/simd/lanes.hpp>
#include <attune/layers/dropout.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// One of the sequences in a matrix, limited to the tokens of a slice: the matrix itself if its scalar is a
/// number, else a copy of a lane, in a Storage. Each `place` is another type, so that two empty objects can
/// share an address.
template <class Matrix, bool = InLanes<typename Matrix::Scalar>>
struct SequenceOf {
  using type = Matrix;
  template <int place = 0>
  struct Storage {};

  ATTUNE_INLINE static ConstView<type> take(ConstView<Matrix> all, int, auto&, const auto&) { return all; }
  /// Memory for one sequence; put() then copies it to its lane.
  ATTUNE_INLINE static View<type> room(View<Matrix> all, auto&) { return all; }
  ATTUNE_INLINE static void put(auto&, int, View<Matrix>, const auto&) {}
};
template <class Matrix>
struct SequenceOf<Matrix, true> {
  using type = Tensor<kernels::Real<typename Matrix::Scalar>, Matrix::rows, Matrix::cols>;
  template <int = 0>
  using Storage = type;

  static ConstView<type> take(ConstView<Matrix> all, int lane, type& storage, const auto& context) {
    kernels::take_lane(size(context), all.data, lane, storage.data());
    return storage;
  }
  static View<type> room(View<Matrix>, type& storage) { return storage; }
  static void put(type& storage, int lane, View<Matrix> all, const auto& context) {
    kernels::put_lane(size(context), storage.data(), lane, all.data);
  }

 private:
  static int size(const auto& context) { return context.template count<Matrix::rows>() * Matrix::cols; }
};
/// The same for ids, which are stored one sequence after the other.
template <std::size_t size, int sequences>
struct SequenceOfIds {
  using type = std::array<int, size>;
  template <int place = 0>
  struct Storage {};

  ATTUNE_INLINE static ConstView<type> take(Ids<static_cast<int>(size) * sequences> ids, int sequence, auto&,
                                            const auto&) {
    return ConstView<type>(ids.data() + static_cast<std::size_t>(sequence) * size);
  }
};
// An input in lanes.
template <class Input, class Scalar>
struct InputInLanes {
  using type = Tensor<Scalar, Input::rows, Input::cols>;
  using Sequence = SequenceOf<type>;
};
template <std::size_t size, class Scalar>
struct InputInLanes<std::array<int, size>, Scalar> {
  using type = std::array<int, size * std::size_t{kernels::kSequencesIn<Scalar>}>;
  using Sequence = SequenceOfIds<size, kernels::kSequencesIn<Scalar>>;
};

/// `Layer`, run once for each sequence in the lanes of a scalar.
template <class Layer, class Number, int lanes>
struct PerSequence<Layer, kernels::LanesOf<Number, lanes>> {
  using Scalar = kernels::LanesOf<Number, lanes>;
  /// The unchanged layer.
  using OfSequence = Layer;
  static constexpr int kIdsPerToken = kIdsOfToken<Layer>;
  using SteppedAs = PerSequence;
  using Input = typename InputInLanes<typename Layer::Input, Scalar>::type;
  using Output = Tensor<Scalar, Layer::Output::rows, Layer::Output::cols>;
  using InputSequence = typename InputInLanes<typename Layer::Input, Scalar>::Sequence;
  using OutputSequence = SequenceOf<Output>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = SetOf<Layer, Matrix, Vector>;
  using Parameters = typename Layer::Parameters;
  template <class Gradients>
  static constexpr bool kReadsInput = detail::ReadsInput<Layer, Gradients>;
  static constexpr bool kFrozen = detail::IsFrozen<Layer>;
  static constexpr Abilities kAbilities =
      with(detail::kAbilitiesOfAll<Layer>, &Abilities::gradient_may_be_input, !TakesIds<Layer>);

  template <class Gradients>
  struct TapeOf {
    using Each = detail::TapeOf<Layer, Gradients>;
    [[no_unique_address]] Copies<Each, lanes> layers;

    /// Visits the masks of the first sequence. forward draws those for the others from the sequences after
    /// it.
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires DropsIn<Each> {
      layers[0].for_each_dropout(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class OfLayer>
  struct ScratchWith {
    [[no_unique_address]] OfLayer layer;
    [[no_unique_address]] typename InputSequence::template Storage<0> x;
    [[no_unique_address]] typename InputSequence::template Storage<1> dx;
    typename Layer::Output y;  // or dy
  };
  template <class Gradients>
  struct ScratchOf : ScratchWith<detail::ScratchOf<Layer, Gradients>> {};
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch : ScratchWith<typename Layer::InferenceScratch> {};

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                      InferenceScratch& scratch, const Call& context = {}) {
    return for_each_sequence(x, y, scratch, context, [&](int, auto of_sequence, auto to) {
      return forward_status<Layer>(context, parameters, of_sequence, to, scratch.layer);
    });
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                      TapeOf<GradientSet>& tape, ScratchOf<GradientSet>& scratch,
                                      const Call& context = {}) {
    return for_each_sequence(x, y, scratch, context, [&](int lane, auto of_sequence, auto to) {
      auto&& own = tape.layers[lane];
      if constexpr (DropsIn<typename TapeOf<GradientSet>::Each>) {
        if (lane > 0) copy_masks(tape.layers[0], own);
        skip_masks(own, lane);
      }
      return forward_status<Layer>(context, parameters, of_sequence, to, own, scratch.layer);
    });
  }
  /// Overwrites dx from dy, unless NoGradient. Adds to the gradients in the order of the sequences. `dx` may
  /// be `x`.
  template <class Set = Parameters, class GradientSet, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                       ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<GradientSet>& scratch,
                       const Call& context = {}) {
    for (int lane = 0; lane < lanes; ++lane) {
      const auto of_sequence = InputSequence::take(x, lane, scratch.x, context);
      const auto gradient = OutputSequence::take(dy, lane, scratch.y, context);
      auto&& own = tape.layers[lane];
      const auto run = [&](auto to) {
        backward_in<Layer>(context, parameters, of_sequence, own, gradient, to, gradients, scratch.layer);
      };
      if constexpr (kWanted<Dx>) {
        const auto to = sink<Input>(dx);
        run(InputSequence::room(to, scratch.dx));
        InputSequence::put(scratch.dx, lane, to, context);
      } else {
        run(NoGradient{});
      }
    }
  }

 private:
  static ForwardResult<Layer> for_each_sequence(ConstView<Input> x, View<Output> y, auto& scratch,
                                                const auto& context, const auto& forward_one) {
    for (int lane = 0; lane < lanes; ++lane) {
      const Status status = forward_one(lane, InputSequence::take(x, lane, scratch.x, context),
                                        OutputSequence::room(y, scratch.y));
      if (TakesIds<Layer> && status != Status::kOk) return ForwardResult<Layer>(status);
      OutputSequence::put(scratch.y, lane, y, context);
    }
    return ForwardResult<Layer>(Status::kOk);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
