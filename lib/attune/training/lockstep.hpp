// A batch in lockstep: as many sequences at once as a packet has lanes.
//
//   attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1024, attune::Lockstep> trainer;
//
// A packet is wider than a row of a tiny model. In lockstep every lane is a sequence of its own
// (kernels/lanes.hpp), so each instruction does one thing for all of them, and the weights are read once for
// all of them. It pays where the lanes' activations fit the first cache; a model whose rows fill packets by
// themselves gains nothing.
//
// The bits are those of one sequence after the other: gradients are added sequence by sequence, in the order
// of the batch. (A sum over more tokens than kernels::kDepthBlock, or a tensor that backward adds to more
// than once, is first added up within its sequence here.)
#pragma once

#include <attune/core/parameters.hpp>
#include <attune/kernels/finite.hpp>
#include <attune/kernels/lanes.hpp>
#include <attune/kernels/product.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/plan.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

// kLanesOf is part of its name: files that are compiled for other vector units have another one.
template <class Model, int kLanesOf>
class LockstepWorkspace {
  using Scalar = typename Model::Scalar;
  using LaneScalar = kernels::LanesOf<Scalar, kLanesOf>;
  using LaneModel = typename Model::template WithScalar<LaneScalar>;
  using P = kernels::Packet<Scalar>;
  static_assert(kernels::kLanes<P> == kLanesOf);
  static_assert(!kTakesIds<Model>, "attune::Lockstep: token ids have no lanes; leave the plan at Streaming");
  static_assert(
      !kDropsIn<typename Model::Tape>,
      "attune::Lockstep: sequences in lockstep would share the masks of dropout; set dropout to 0, or "
      "leave the plan at Streaming");
  static_assert(
      kRunsInLockstep<Model>,
      "attune::Lockstep: one of the layers has functions without lanes: GELU, rotary and sinusoidal "
      "positions, softmax layers, pooling of the largest, or a layer of one's own that does not say "
      "kRunsInLockstep; leave the plan at Streaming");

 public:
  static constexpr int kSequences = kLanesOf;

  static constexpr MemoryReport memory() {
    return {.parameters = sizeof parameters_,
            .gradients = sizeof gradients_,
            .tape = kBytes<typename LaneModel::Tape> + sizeof output_,
            .scratch = sizeof(Shared) + sizeof input_};
  }

  /// The parameters for the accumulate() calls that follow.
  void load(const typename Model::Parameters& parameters) {
    for_each_tensor(
        [](const TensorPath&, auto& lanes, const auto& tensor) {
          for (int i = 0; i < tensor.size; ++i) lanes.values[i] = tensor.values[i];
        },
        parameters_, parameters);
  }

  /// Forward, loss and backward of kSequences sequences, stacked in `inputs`, with target_of(0), …; adds to
  /// gradients, loss and normalisers in their order. Where a target is refused, or where a mask could have
  /// hidden what is not finite and something is not, nothing is added: false, and one by one it has its
  /// answer. (Lanes have no zero that annihilates.)
  template <class Loss, class Mask>
  [[nodiscard]] bool accumulate(const Scalar* inputs, const auto& target_of, const Mask& mask,
                                const Loss& loss, typename Model::Parameters& gradients, Scalar& sum,
                                auto& normalisers) {
    using Output = typename LaneModel::Output;
    interleave<Model::Input::size>(inputs, input_.values);
    forward_through<LaneModel>(mask, parameters_, ConstView<typename LaneModel::Input>(input_),
                               View<Output>(output_), tape_, shared_.scratch);
    LossSum<Scalar> losses[std::size_t{kSequences}];
    if (!add_losses(target_of, loss, losses)) return false;
    set_zero(gradients_);
    backward_through<LaneModel>(mask, parameters_, ConstView<typename LaneModel::Input>(input_), tape_,
                                ConstView<Output>(output_), NoGradient{}, gradients_, shared_.scratch);
    if constexpr (kMasks<Mask>) {
      bool finite = true;
      for (const LossSum<Scalar>& of_sequence : losses)
        finite = finite && kernels::finite(1, &of_sequence.sum);
      for_each_tensor(
          [&finite](const TensorPath&, const auto& lanes) {
            finite = finite && lanes_are_finite(lanes.size, lanes.values);
          },
          gradients_);
      if (!finite) return false;
    }
    for (const LossSum<Scalar>& of_sequence : losses) {
      sum += of_sequence.sum;
      normalisers.add(of_sequence.normaliser);
    }
    for_each_tensor(
        [](const TensorPath&, auto& to, const auto& lanes) {
          add_in_order<std::remove_cvref_t<decltype(to)>::size>(lanes.values, to.values);
        },
        gradients, gradients_);
    return true;
  }

 private:
  // The sequences' losses, whose gradients take the place of the outputs. False where a target is refused.
  template <class Loss>
  bool add_losses(const auto& target_of, const Loss& loss, LossSum<Scalar>* losses) {
    using Output = typename LaneModel::Output;
    constexpr int kSize = Model::Output::size;
    constexpr bool kClasses = requires { Loss::kClassTargets; };
    constexpr bool kInLanes = !kClasses && requires(ConstView<Output> y, View<Output> dy) {
      loss.sum(y, y, dy);
    };
    if constexpr (kInLanes) {
      interleave<kSize>(target_of(0).data, shared_.target.values);
      const LossSum<LaneScalar> lanes =
          loss.sum(ConstView<Output>(output_), ConstView<Output>(shared_.target), View<Output>(output_));
      const auto* sums = reinterpret_cast<const Scalar*>(&lanes.sum);
      for (int s = 0; s < kSequences; ++s) losses[s] = {sums[s], lanes.normaliser, lanes.status};
    } else {  // classes, and losses of one scalar: one sequence after the other
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

  // to[i], lane s = from[s · kSize + i].
  template <int kSize>
  static void interleave(const Scalar* from, LaneScalar* to) {
    kernels::detail::transpose_panel<P, kSize, kSequences, kSize>(from, reinterpret_cast<Scalar*>(to));
  }

  static bool lanes_are_finite(int size, const LaneScalar* lanes) {
    return kernels::finite(size * kSequences, reinterpret_cast<const Scalar*>(lanes));
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

  typename LaneModel::Parameters parameters_;  // each in every lane
  typename LaneModel::Parameters gradients_;   // of each sequence
  [[no_unique_address]] typename LaneModel::Tape tape_;
  union Shared {
    typename LaneModel::Scratch scratch;
    typename LaneModel::Output target;  // for the loss, between forward and backward; or y by sequences
  } shared_;
  typename LaneModel::Input input_;
  typename LaneModel::Output output_;  // y, then dL/dy
};

}  // namespace detail

/// Lockstep on vector units of so many bytes.
template <int vector_bytes>
struct LockstepOf {
  template <class Model>
  using Gradients = typename Model::Parameters;
  template <class Model>
  using Workspace =
      typename std::conditional_t<(kernels::kLanes<kernels::Packet<typename Model::Scalar>> > 1),
                                  std::type_identity<detail::LockstepWorkspace<
                                      Model, kernels::kLanes<kernels::Packet<typename Model::Scalar>>>>,
                                  std::type_identity<Streaming::Workspace<Model>>>::type;
};

/// For models without token ids, dropout, GELU, rotary or sinusoidal positions, softmax layers and pooling of
/// the largest, with any loss. As many sequences in lockstep as the widest packet has lanes (16 with AVX-512,
/// 8 with AVX2); what is
/// left of a batch, and batches with a mask for each sequence, go one by one. Where the target has no
/// packets, the same as Streaming. In files that are compiled for another vector unit it is another type.
using Lockstep = LockstepOf<static_cast<int>(sizeof(kernels::Packet<float>))>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
