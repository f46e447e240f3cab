// Batches in lockstep: one sequence in each lane of a packet.
//
//   attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1024, attune::Lockstep> trainer;
//
// A packet is wider than a row of a tiny model. In lockstep each lane holds its own sequence
// (kernels/simd/lanes.hpp), so one instruction works on all of them, and weights are read once for all. It
// pays if the activations of all lanes fit the first-level cache. A model whose rows fill packets gains
// nothing.
//
// The bits are the same as one sequence after the other. Gradients are added sequence by sequence, in the
// order of the batch, and each sequence has the same dropout masks. Layers without lanes run one sequence at
// a time between layers that have them. They are token ids, softmax layers, more tokens than
// kernels::kDepthBlock, and your own layers without lanes in kAbilities (execution/layer.hpp). Such layers
// gain nothing, and a model made of them takes the same time as without lockstep (tests/bench/batches.cpp).
//
// A SequenceLength costs as many tokens as it has. If each sequence has its own mask, neighbors with equal
// masks run in lockstep, so sort sequences by length. The rest run one by one, each at its own length; in
// lanes all would take the longest.
#pragma once

#include <attune/core/memory.hpp>
#include <attune/core/parameters.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/gemm.hpp>
#include <attune/kernels/simd/lanes.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/per_sequence.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/plan.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// kLanesOf is part of the name, so files compiled for different vector units have different types.
template <class Model, int kLanesOf>
class LockstepExecutor : public ReadsParameters {
  using Scalar = typename Model::Scalar;
  using LaneScalar = kernels::LanesOf<Scalar, kLanesOf>;
  using LaneModel = typename WithScalarOf<Model, LaneScalar>::type;
  using P = kernels::Packet<Scalar>;
  static_assert(kernels::kLanes<P> == kLanesOf);
  using Input = MemberIf<!TakesIds<Model>, typename LaneModel::Input, 17>;

 public:
  static constexpr int kSequences = kLanesOf;

  static constexpr MemoryReport memory() {
    return {.parameters = sizeof parameters_,
            .gradients = sizeof gradients_,
            .tape = kBytes<typename LaneModel::Tape> + sizeof output_,
            .scratch = sizeof(Shared) + kBytes<Input>};
  }

  /// Sets the parameters for the accumulate() calls that follow.
  void broadcast(const auto& parameters) {
    for_each_tensor(
        []<class Lanes>(const TensorPath&, Lanes& lanes, const auto& tensor) {
          for (int i = 0; i < tensor.size; ++i)
            lanes.values[i] = kernels::Real<typename Lanes::Scalar>(tensor.values[i]);
        },
        parameters_, parameters);
  }

  /// Forward, loss and backward of kSequences sequences: `first` and the following ones, with target_of(0),
  /// …. Dropout masks start at `tape`. Adds to gradients and sums in the order of the sequences. Returns
  /// false with nothing added if ids or a target are refused, or if a mask may hide a value that is not
  /// finite. The caller then runs the sequences one by one. (In lanes, zero times infinity is not zero.)
  template <class Loss, class Mask>
  [[nodiscard]] bool accumulate(ConstView<typename Model::Input> first, const auto& target_of, auto& tape,
                                const Mask& mask, const Loss& loss, typename Model::Parameters& gradients,
                                BatchSums<Loss, Scalar>& sums) {
    using Output = typename LaneModel::Output;
    copy_masks(tape, tape_);
    const auto context = context_for<LaneModel>(mask);
    const ConstView<typename LaneModel::Input> x = stacked(first, context);
    const View<Output> y(output_);
    const Status status = forward_status<LaneModel>(context, parameters_, x, y, tape_, shared_.scratch);
    if (status != Status::kOk) return false;
    clear_behind(context, y);
    LossSum<Scalar> losses[std::size_t{kSequences}];
    if (!add_losses(target_of, loss, losses)) return false;
    begin_gradients(gradients);
    backward_in<LaneModel>(context, parameters_, x, tape_, ConstView<Output>(y), NoGradient{}, gradients_,
                           shared_.scratch);
    if (kMasks<Mask>) {
      bool all = true;
      for (const LossSum<Scalar>& of_sequence : losses) all = all && kernels::finite(1, &of_sequence.sum);
      for_each_tensor(
          [&all](const TensorPath&, const auto& tensor) {
            constexpr int kEach = kOfLanes<decltype(tensor)> ? kSequences : 1;
            const auto* const values = reinterpret_cast<const Scalar*>(tensor.values);
            all = all && kernels::finite(tensor.size * kEach, values);
          },
          gradients_);
      if (!all) return false;
    }
    for (const LossSum<Scalar>& of_sequence : losses) sums.add(of_sequence);
    end_gradients(gradients);
    return true;
  }

 private:
  // The inputs of kSequences sequences. Ids stay as they are; elements of matrices are interleaved, for as
  // many tokens as there are.
  template <AnyContext Call>
  ConstView<typename LaneModel::Input> stacked(ConstView<typename Model::Input> first,
                                               [[maybe_unused]] const Call& context) {
    if constexpr (TakesIds<Model>) {
      return ConstView<typename LaneModel::Input>(first.data());
    } else {
      using X = typename Model::Input;
      if constexpr (Call::kHasLength) {
        for (int i = 0; i < context.template count<X::rows>(); ++i) {
          interleave<X::size, X::cols>(first.data + i * X::cols, input_.values + i * X::cols);
        }
      } else {
        interleave<X::size>(first.data, input_.values);
      }
      return input_;
    }
  }

  // Tensors of lanes hold each sequence's gradients, from zero. Other tensors hold the batch's gradients:
  // their layer adds to them in the order of the sequences (layers/per_sequence.hpp).
  template <class Of>
  static constexpr bool kOfLanes = std::is_same_v<typename std::remove_cvref_t<Of>::Scalar, LaneScalar>;
  void begin_gradients(const typename Model::Parameters& gradients) {
    for_each_gradient(
        gradients, [](auto& own, const auto&) { own.set_zero(); },
        [](auto& own, const auto& of_batch) { own = of_batch; });
  }
  void end_gradients(typename Model::Parameters& gradients) {
    for_each_gradient(
        gradients,
        [](auto& own, auto& of_batch) {
          add_in_order<std::remove_cvref_t<decltype(own)>::size>(own.values, of_batch.values);
        },
        [](auto& own, auto& of_batch) { of_batch = own; });
  }
  // Calls of_lanes(own, of_batch) for tensors of lanes, and of_numbers(own, of_batch) for others.
  void for_each_gradient(auto& gradients, const auto& of_lanes, const auto& of_numbers) {
    for_each_tensor(
        [&](const TensorPath&, auto& own, auto& of_batch) {
          first_if<kOfLanes<decltype(own)>>(of_lanes, of_numbers)(own, of_batch);
        },
        gradients_, gradients);
  }

  // The losses of the sequences; their gradients overwrite the outputs. False if a target is refused.
  template <class Loss>
  bool add_losses(const auto& target_of, const Loss& loss, LossSum<Scalar>* losses) {
    using Output = typename LaneModel::Output;
    constexpr int kSize = Model::Output::size;
    if constexpr (
        !requires { Loss::kClassTargets; } &&
        requires(ConstView<Output> y, View<Output> dy) { loss.sum(y, y, dy); }) {
      interleave<kSize>(target_of(0).data, shared_.target.values);
      const LossSum<LaneScalar> lanes =
          loss.sum(ConstView<Output>(output_), ConstView<Output>(shared_.target), View<Output>(output_));
      const auto* sums = reinterpret_cast<const Scalar*>(&lanes.sum);
      for (int s = 0; s < kSequences; ++s) losses[s] = {sums[s], lanes.normalizer, lanes.status};
    } else {  // classes, and losses of one scalar: one sequence at a time
      using OneOutput = typename Model::Output;
      auto* outputs = reinterpret_cast<Scalar*>(shared_.target.values);
      const auto* lanes = reinterpret_cast<const Scalar*>(output_.values);
      for (int s = 0; s < kSequences; ++s) {
        const View<OneOutput> output(outputs + s * kSize);
        for (int i = 0; i < kSize; ++i) output.data[i] = lanes[i * kSequences + s];
        losses[s] = loss.sum(ConstView<OneOutput>(output), target_of(s), output);
        if (losses[s].status != Status::kOk) return false;
      }
      interleave<kSize>(outputs, output_.values);
    }
    return true;
  }

  // to[i], lane s = from[s · kSize + i], for kCount elements.
  template <int kSize, int kCount = kSize>
  static void interleave(const Scalar* from, LaneScalar* to) {
    kernels::detail::transpose_panel<P, kCount, kSequences, kSize>(from, reinterpret_cast<Scalar*>(to));
  }

  // to[i] = ((to[i] + lane 0 of from[i]) + lane 1) + … .
  template <int kSize>
  static void add_in_order(const LaneScalar* from, Scalar* to) {
    const auto* lanes = reinterpret_cast<const Scalar*>(from);
    kernels::for_each_packet<Scalar>(kSize, [=]<class Q>(int i) ATTUNE_INLINE_LAMBDA {
      constexpr int kWidth = kernels::kLanes<Q>;
      alignas(Q) Scalar by_sequence[std::size_t{kSequences * kWidth}];
      kernels::detail::transpose_panel<Q, kSequences, kWidth, kSequences>(lanes + i * kSequences,
                                                                          by_sequence);
      Q sum = kernels::load<Q>(to + i);
      for (int s = 0; s < kSequences; ++s)
        sum = kernels::add(sum, kernels::load<Q>(by_sequence + s * kWidth));
      kernels::store(to + i, sum);
    });
  }

  typename LaneModel::Parameters parameters_;  // the same in every lane, except in layers without lanes
  typename LaneModel::Parameters gradients_;   // per sequence; in layers without lanes, of the batch
  [[no_unique_address]] typename LaneModel::Tape tape_;
  union Shared {
    typename LaneModel::Scratch scratch;
    typename LaneModel::Output target;  // for the loss, between forward and backward; or y by sequences
  } shared_;
  [[no_unique_address]] Input input_;
  typename LaneModel::Output output_;  // y, then dL/dy
};

template <class Model>
class LockstepExecutor<Model, 1> : public BySequence::BatchExecutor<Model> {};

}  // namespace detail

/// Lockstep on vector units of `vector_bytes` bytes.
template <int vector_bytes>
struct LockstepOf {
  template <class Model>
  using Gradients = typename Model::Parameters;
  /// The set that tape and scratch are made for.
  template <class Model>
  using GradientSet = typename Model::Parameters;
  template <class Model>
  using BatchExecutor =
      detail::LockstepExecutor<Model, kernels::kLanes<kernels::Packet<typename Model::Scalar>>>;
};

/// For every model, with any loss. Runs as many sequences at once as the widest packet has lanes: 16 with
/// AVX-512, 8 with AVX2. The remainder of a batch, and neighbors with different masks, run one by one. Equals
/// BySequence on targets without packets. Files compiled for another vector unit see another type.
using Lockstep = LockstepOf<static_cast<int>(sizeof(kernels::Packet<float>))>;

}  // namespace ATTUNE_NAMESPACE
