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

#include <attune/core/batch.hpp>
#include <attune/core/parameters.hpp>
#include <attune/kernels/lanes.hpp>
#include <attune/kernels/product.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/plan.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

template <class Model>
class LockstepWorkspace {
  using Scalar = typename Model::Scalar;
  using LaneScalar = kernels::Lanes<Scalar>;
  using LaneModel = typename Model::template WithScalar<LaneScalar>;
  using P = kernels::Packet<Scalar>;
  static_assert(!kTakesIds<Model>, "attune::Lockstep: token ids have no lanes; leave the plan at Streaming");
  static_assert(
      !kDropsIn<typename Model::Tape>,
      "attune::Lockstep: sequences in lockstep would share the masks of dropout; set dropout to 0, or "
      "leave the plan at Streaming");
  static_assert(
      kRunsInLockstep<Model>,
      "attune::Lockstep: one of the layers has constants or functions without lanes; what it trains "
      "is Linear, MultiHeadAttention without rotary positions, ReLU, SiLU and FeedForward with "
      "them, learned positions and pooling: leave the plan at Streaming");

 public:
  static constexpr int kSequences = kernels::kLanes<P>;

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

  /// Forward, loss and backward of kSequences sequences, stacked in `inputs` and `targets`; adds to gradients
  /// and loss in their order.
  template <class Loss, class Mask>
  void accumulate(const Scalar* inputs, const Scalar* targets, const Mask& mask, Scalar weight,
                  typename Model::Parameters& gradients, Scalar& loss) {
    interleave<Model::Input::size>(inputs, input_.values);
    forward_through<LaneModel>(mask, parameters_, ConstView<typename LaneModel::Input>(input_),
                               View<typename LaneModel::Output>(output_), tape_, shared_.scratch);
    interleave<Model::Output::size>(targets, shared_.target.values);
    const LaneScalar losses = Loss::forward(output_, shared_.target, output_, weight);
    set_zero(gradients_);
    backward_through<LaneModel>(mask, parameters_, ConstView<typename LaneModel::Input>(input_), tape_,
                                ConstView<typename LaneModel::Output>(output_), NoGradient{}, gradients_,
                                shared_.scratch);
    add_in_order<1>(&losses, &loss);
    for_each_tensor(
        [](const TensorPath&, auto& sum, const auto& lanes) {
          add_in_order<std::remove_cvref_t<decltype(sum)>::size>(lanes.values, sum.values);
        },
        gradients, gradients_);
  }

 private:
  // to[i], lane s = from[s · kSize + i].
  template <int kSize>
  static void interleave(const Scalar* from, LaneScalar* to) {
    kernels::detail::transpose_panel<P, kSize, kSequences, kSize>(from, reinterpret_cast<Scalar*>(to));
  }

  // to[i] = ((to[i] + lane 0 of from[i]) + lane 1) + … .
  template <int kSize>
  static void add_in_order(const LaneScalar* from, Scalar* to) {
    const auto* lanes = reinterpret_cast<const Scalar*>(from);
    kernels::for_each_packet<Scalar>(kSize, [=]<class Q>(int i) ATTUNE_INLINE_LAMBDA {
      constexpr int kWidth = kernels::kLanes<Q>;
      alignas(Q) Scalar by_sequence[kSequences * kWidth];
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
    typename LaneModel::Output target;  // for the loss, between forward and backward
  } shared_;
  typename LaneModel::Input input_;
  typename LaneModel::Output output_;  // y, then dL/dy
};

}  // namespace detail

/// For models of Linear, MultiHeadAttention without rotary positions, FeedForward with ReLU or SiLU, learned
/// positions and Pooling, with a squared error (classes as targets have no lanes: they go one by one). As
/// many sequences in lockstep as the widest packet has lanes (16 with AVX-512, 8 with AVX2); what is left of
/// a batch goes one by one. Where the target has no packets, the same as Streaming.
struct Lockstep {
  template <class Model>
  using Gradients = typename Model::Parameters;
  template <class Model>
  using Workspace =
      typename std::conditional_t<(kernels::kLanes<kernels::Packet<typename Model::Scalar>> > 1),
                                  std::type_identity<detail::LockstepWorkspace<Model>>,
                                  std::type_identity<Streaming::Workspace<Model>>>::type;
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
