// One layer several times, each with its own parameters, in one copy of the code.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// `count` equal layers in sequence, in one copy of their code. Each layer's output is the next layer's
/// input.
template <int count, detail::CheckedLayer Layer>
class Repeat : public detail::Steps<Repeat<count, Layer>> {
 public:
  static_assert(detail::Holds<(count > 0 && count <= detail::kMaxLayers)>,
                "attune::Repeat: from 1 to 24 layers");
  static_assert(detail::kFits<Layer>);

  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  using WithScalar = Repeat<count, typename detail::WithScalarOf<Layer, Other>::type>;
  using Parts = LayerList<Layer>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Repeat", count, kFingerprintOf<Layer>);

  /// layers[i] has the name "i" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Each = detail::SetOf<Layer, Matrix, Vector>;
    [[no_unique_address]] detail::Copies<Each, count> layers;
    ATTUNE_FIELDS(Layers(layers))
  };
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kReadsInput<Layer, typename Gradients::Each>;
  static constexpr Abilities kAbilities =
      detail::with(detail::with(detail::kAbilitiesOfAll<Layer>, &Abilities::gradient_may_be_input,
                                detail::kGradientMayBeInput<Layer>),
                   &Abilities::output_may_be_input, detail::kReplacesInput<Layer>);

 private:
  struct Nothing {};
  struct Outputs {
    Output outputs[std::size_t{count > 1 ? count - 1 : 1}];
  };
  template <int boundaries>
  using DoubleBuffer = detail::DoubleBuffer<Scalar, Output::size, boundaries>;
  // In inference, activations between layers that are not in y.
  static constexpr int kInferredBetween = kAbilities.output_may_be_input ? 0 : count - 1;

 public:
  /// The layers' tapes, and the matrices between them that backward reads.
  template <class Gradients>
  struct TapeOf {
    static constexpr bool kKeepsBetween = count > 1 && kReadsInput<Gradients>;
    using Each = detail::TapeOf<Layer, typename Gradients::Each>;
    [[no_unique_address]] detail::Copies<Each, count> layers;
    [[no_unique_address]] std::conditional_t<kKeepsBetween, Outputs, Nothing> between;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires detail::kDropsIn<Each> {
      for (Each& layer : layers.elements) layer.for_each_dropout(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  /// Gradients overwrite taped matrices if the layers allow it.
  template <class Gradients>
  struct ScratchOf {
    static constexpr bool kInPlace =
        TapeOf<Gradients>::kKeepsBetween && detail::kGradientReplacesInput<Layer, typename Gradients::Each>;
    [[no_unique_address]] detail::ScratchOf<Layer, typename Gradients::Each> layer;
    [[no_unique_address]] DoubleBuffer<kInPlace ? 0 : count - 1> between;  // gradients, and untaped matrices
  };
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch {
    [[no_unique_address]] typename Layer::InferenceScratch layer;
    [[no_unique_address]] DoubleBuffer<kInferredBetween> activations;
  };

  /// Token by token (execution/stream.hpp), if the layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream {
    using Each = detail::StreamOf<Layer, tokens, cache>;
    using Memory = detail::Copies<detail::StreamMemoryOf<Layer, cache>, count>;
    static constexpr std::uint64_t kMostTokens = detail::kMostTokens<Layer, cache>;
    /// Whether y of a step may be x.
    static constexpr bool kOutputMayBeInput = detail::kStepsInPlace<Layer, tokens, cache>;
    struct Scratch {
      [[no_unique_address]] typename Each::Scratch layer;
      [[no_unique_address]] detail::DoubleBuffer<Scalar, tokens * Output::cols,
                                                 kOutputMayBeInput ? 0 : count - 1>
          activations;
    };
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Layer, tokens>> x, View<detail::StepOutput<Layer, tokens>> y,
                     Memory& memory, Scratch& scratch, const auto&... more) {
      for (int i = 0; i < count; ++i) {
        auto to = y;
        if constexpr (count > 1 && !kOutputMayBeInput) {
          if (i < count - 1) to = scratch.activations.template at<detail::StepOutput<Layer, tokens>>(i);
        }
        auto&& layer_memory = memory[i];
        detail::step_in<Layer, cache, tokens>(position, parameters.layers[i], x, to, layer_memory,
                                              scratch.layer, more...);
        x = to;
      }
    }
    static void remember(const auto& parameters, const auto& remembered, Memory& memory) {
      for (int i = 0; i < count; ++i) Each::remember(parameters.layers[i], remembered, memory[i]);
    }
  };

  /// Inference. `y` may be `x` if the layer allows it.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    const auto output = [&](int i) ATTUNE_INLINE_LAMBDA {
      if constexpr (kInferredBetween > 0) {
        if (i < count - 1) return scratch.activations.template at<Output>(i);
      }
      return y;
    };
    context.template repeat<count>([&](int i) ATTUNE_INLINE_LAMBDA {
      const ConstView<Input> layer_input = i == 0 ? x : ConstView<Input>(output(i - 1));
      detail::forward_in<Layer>(context, parameters.layers[i], layer_input, output(i), scratch.layer);
    });
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class Gradients, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Gradients>& tape,
                      ScratchOf<Gradients>& scratch, const Call& context = {}) {
    const auto output = [&](int i) ATTUNE_INLINE_LAMBDA {
      if constexpr (count > 1) {
        if (i < count - 1) return between(i, tape, scratch);
      }
      return y;
    };
    context.template repeat<count>([&](int i) ATTUNE_INLINE_LAMBDA {
      const ConstView<Input> layer_input = i == 0 ? x : ConstView<Input>(output(i - 1));
      auto&& layer_tape = tape.layers[i];
      detail::forward_in<Layer>(context, parameters.layers[i], layer_input, output(i), layer_tape,
                                scratch.layer);
    });
  }
  /// dx from dy, overwritten; gradients accumulate. Uses up the tape. `dx` may not overlap `dy`. It may be
  /// `x` if the layer allows it.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Call& context = {}) {
    const auto d_output = [&](int i) ATTUNE_INLINE_LAMBDA -> ConstView<Output> {
      if constexpr (count > 1) {
        if (i < count - 1) return gradient_between(i, tape, scratch);
      }
      return dy;
    };
    if constexpr (count > 1) {
      context.template repeat<count - 1>([&](int done) ATTUNE_INLINE_LAMBDA {
        const int i = count - 1 - done;
        backward_one(i, parameters, between(i - 1, tape, scratch), tape, d_output(i),
                     gradient_between(i - 1, tape, scratch), gradients, scratch, context);
      });
    }
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      backward_one(0, parameters, x, tape, d_output(0), detail::sink<Input>(dx), gradients, scratch, context);
    });
  }

 private:
  static void backward_one(int i, const auto& parameters, ConstView<Input> x, auto& tape,
                           ConstView<Output> dy, auto dx, auto& gradients, auto& scratch,
                           const auto& context) {
    auto&& layer_tape = tape.layers[i];
    auto&& gradient = gradients.layers[i];
    detail::backward_in<Layer>(context, parameters.layers[i], x, layer_tape, dy, dx, gradient, scratch.layer);
  }

  // The output of layer i: on the tape, or in scratch if backward does not read it. Scratch is overwritten by
  // then.
  static View<Output> between(int i, auto& tape, auto& scratch) {
    if constexpr (std::remove_reference_t<decltype(tape)>::kKeepsBetween) {
      return tape.between.outputs[i];
    } else {
      return scratch.between.template at<Output>(i);
    }
  }
  // The gradient of that output.
  static View<Output> gradient_between(int i, auto& tape, auto& scratch) {
    if constexpr (std::remove_reference_t<decltype(scratch)>::kInPlace) {
      return tape.between.outputs[i];
    } else {
      return scratch.between.template at<Output>(i);
    }
  }
};

namespace detail {

template <int count, class Layer>
inline constexpr bool kWorksInPlace<Repeat<count, Layer>> = true;
template <int count, class Layer>
inline constexpr bool kUpdatesInPlace<Repeat<count, Layer>> = kUpdatesInPlace<Layer>;

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
