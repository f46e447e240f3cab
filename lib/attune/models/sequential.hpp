// Layers in sequence: y = f_n(… f_2(f_1(x))).
//
//   using Model = Sequential<Linear<LinearShape{8, 8, 16}>, LearnedPositions<PositionShape{8, 16}>,
//                            Repeat<2, EncoderLayer<kEncoder>>, Pooling<PoolingShape{8, 16}>,
//                            Linear<LinearShape{1, 16, 10}>>;
//
// The model is a layer itself. The matrix between two layers is on the tape if the second one's backward
// reads it, and its gradient overwrites it if allowed. A ReLU overwrites its input on the tape with its
// output. Otherwise both are in scratch while one of the two layers runs. A layer's scratch is dead when the
// next one starts, so all layers share it. A mask goes to every layer that takes one. Frozen layers at the
// front run inference only.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/sequential_memory.hpp>

namespace ATTUNE_NAMESPACE {

/// Layers in sequence.
template <detail::CheckedLayer... Layers>
class Sequential : public detail::Steps<Sequential<Layers...>> {
 public:
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  static_assert(detail::Holds<(kLayers > 0 && kLayers <= detail::kMaxLayers)>,
                "attune::Sequential: from 1 to 24 layers");

  template <int index>
  using Layer = typename detail::TypeAt<index, Layers...>::type;
  using Scalar = typename Layer<0>::Scalar;
  using Input = typename Layer<0>::Input;
  using Output = typename Layer<kLayers - 1>::Output;
  template <class Other>
  using WithScalar = Sequential<typename detail::WithScalarOf<Layers, Other>::type...>;
  using Parts = LayerList<Layers...>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Sequential", kFingerprintOf<Layers>...);

  /// `layer<i>()` is the set of layer i, named "i" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The sets of the layers, in order.
    [[no_unique_address]] detail::Members<detail::SetOf<Layers, Matrix, Vector>...> members;

    /// The set of layer i.
    template <int index>
    constexpr decltype(auto) layer() {
      return detail::member<index>(members);
    }
    /// The set of layer i.
    template <int index>
    constexpr decltype(auto) layer() const {
      return detail::member<index>(members);
    }
    ATTUNE_FIELDS(Layers(members))
  };

  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput =
      detail::kReadsInput<Layer<0>,
                          std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<0>())>>;
  static constexpr Abilities kAbilities = detail::kAbilitiesOfAll<Layers...>;

 private:
  using OfLayers = detail::SequentialMemory<Layers...>;
  template <class Gradients, int index>
  using KeptOf = typename OfLayers::template KeptOf<Gradients, index>;
  static constexpr int kInferred = OfLayers::kInferred;
  // The first layer that attends to a memory (models/encoder_decoder.hpp).
  static constexpr int kFirstOfMemory = [] {
    constexpr bool kAttends[] = {detail::kAttendsToMemory<Layers>...};
    int first = 0;
    while (first < kLayers && !kAttends[first]) ++first;
    return first;
  }();
  // The first layer that backward reaches without dx.
  template <class Gradients, class Call>
  static constexpr int kFirstReached = (std::min)(OfLayers::template kFirstTrained<Gradients>,
                                                  detail::kGivesMemoryGradient<std::remove_cvref_t<Call>>
                                                      ? kFirstOfMemory
                                                      : kLayers - 1);

 public:
  /// Whether a layer is Frozen, and the others have no parameters and no dropout.
  static constexpr bool kFrozen = (detail::kFrozen<Layers> || ...) && OfLayers::kAllFixed;
  /// Whether decoder layers run inference only in training, so that their memory gets no gradient.
  static constexpr bool kInfersMemory = kFirstOfMemory < kInferred || (detail::kInfersMemory<Layers> || ...);

  /// The layers' tapes, and the matrices between them that backward reads.
  template <class Gradients>
  struct TapeOf {
    using Kept = typename OfLayers::template All<Gradients>;
    [[no_unique_address]] typename Kept::Tapes layers;
    [[no_unique_address]] typename OfLayers::template Between<Gradients>::Outputs between;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires Kept::kDrops {
      OfLayers::for_each_index([&]<int index>() {
        if constexpr (detail::kDropsIn<typename KeptOf<Gradients, index>::Tape>) {
          detail::member<index>(layers).for_each_dropout(visitor);
        }
      });
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    typename OfLayers::template All<Gradients>::Scratch layers;
  };
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch {
    detail::SequentialScratch<Scalar,
                              detail::SequentialOutputs<detail::SequentialOutput{
                                  Layers::Output::size, detail::kReplacesInput<Layers>}...>,
                              typename Layers::InferenceScratch...>
        layers;
  };

  /// Token by token (execution/stream.hpp), if each layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream {
    using Memory = detail::Members<detail::StreamMemoryOf<Layers, cache>...>;
    static constexpr std::uint64_t kMostTokens = (std::min)({detail::kMostTokens<Layers, cache>...});
    struct Scratch {
      detail::SequentialScratch<
          Scalar,
          detail::SequentialOutputs<detail::SequentialOutput{
              tokens * Layers::Output::cols,
              detail::kSameShape<Layers>&& detail::kStepsInPlace<Layers, tokens, cache>}...>,
          typename detail::StreamOf<Layers, tokens, cache>::Scratch...>
          layers;
    };
    template <int index = 0>
    ATTUNE_INLINE static detail::ForwardResult<Layer<index>> step(
        std::uint64_t position, const auto& parameters, ConstView<detail::StepInput<Layer<index>, tokens>> x,
        View<detail::StepOutput<Sequential, tokens>> y, Memory& memory, Scratch& scratch,
        const auto&... more) {
      const auto through = [&](auto to) ATTUNE_INLINE_LAMBDA {
        auto&& own = parameters.template layer<index>();
        auto&& layer_memory = detail::member<index>(memory);
        return detail::step_in<Layer<index>, cache, tokens>(
            position, own, x, to, layer_memory, scratch.layers.template of_layer<index>(), more...);
      };
      if constexpr (index + 1 == kLayers) {
        return through(y);
      } else {
        const auto next = scratch.layers.template behind<detail::StepOutput<Layer<index>, tokens>, index>();
        return detail::then([&]() ATTUNE_INLINE_LAMBDA { return through(next); },
                            [&]() ATTUNE_INLINE_LAMBDA {
                              step<index + 1>(position, parameters, next, y, memory, scratch, more...);
                            });
      }
    }
    static void remember(const auto& parameters, const auto& remembered, Memory& memory) {
      OfLayers::for_each_index([&]<int index>() {
        if constexpr (detail::kAttendsToMemory<Layer<index>>) {
          detail::StreamOf<Layer<index>, tokens, cache>::remember(parameters.template layer<index>(),
                                                                  remembered, detail::member<index>(memory));
        }
      });
    }
  };

  /// void, or a Status if the first layer takes token ids: kInvalidToken, with nothing written, if an id is
  /// outside the vocabulary.
  using Outcome = detail::ForwardResult<Layer<0>>;

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static Outcome forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                         const Call& context = {}) {
    return infer_from<0>(parameters, x, y, scratch, context);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class Gradients, AnyContext Call = Context<>>
  static Outcome forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Gradients>& tape,
                         ScratchOf<Gradients>& scratch, const Call& context = {}) {
    return forward_from<0>(parameters, x, y, tape, scratch, context);
  }
  /// dx from dy, overwritten; gradients accumulate. Uses up the tape. `dx` may overlap neither `dy` nor `x`.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Call& context = {}) {
    static_assert(detail::Holds<(!kAsked<Dx> || kInferred == 0)>,
                  "attune::Sequential: a model that begins with a Frozen layer keeps no tape for dx; list "
                  "its layers in the outer Sequential if earlier layers train");
    backward_from<kLayers - 1>(parameters, x, tape, dy, detail::sink<Input>(dx), gradients, scratch, context);
  }

  /// Training that begins at a layer: forward from the input x of layer `first`, and backward to its
  /// parameters. Tape, scratch and gradients are the model's; earlier layers are neither computed nor get a
  /// gradient, and advance to the next sequence's dropout masks.
  template <int first>
    requires(first >= 0 && first < kLayers)
  struct From {
    using Scalar = typename Sequential::Scalar;
    using Input = typename Layer<first>::Input;
    using Output = typename Sequential::Output;
    using Parameters = typename Sequential::Parameters;
    static constexpr Abilities kAbilities = []<int... index>(std::integer_sequence<int, index...>) {
      return detail::kAbilitiesOfAll<Layer<first + index>...>;
    }
    (std::make_integer_sequence<int, kLayers - first>{});

    /// `y` may not overlap `x`.
    template <class Set, class Gradients, AnyContext Call = Context<>>
    static detail::ForwardResult<Layer<first>> forward(const Set& parameters, ConstView<Input> x,
                                                       View<Output> y, TapeOf<Gradients>& tape,
                                                       ScratchOf<Gradients>& scratch,
                                                       const Call& context = {}) {
      if constexpr (first == 0) {
        return Sequential::forward(parameters, x, y, tape, scratch, context);
      } else {
        const auto input = between<first - 1>(tape, scratch);
        context.stage([&]() ATTUNE_INLINE_LAMBDA {
          for (int i = 0; i < Input::rows; ++i) {
            for (int j = 0; j < Input::cols; ++j) input(i, j) = x(i, j);
          }
        });
        return forward_from<first>(parameters, input, y, tape, scratch, context);
      }
    }
    /// dy is overwritten; gradients accumulate. Uses up the tape.
    template <class Set, class Kept, class Gradients, AnyContext Call = Context<>>
    static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                         NoGradient dx, Gradients& gradients, ScratchOf<Kept>& scratch,
                         const Call& context = {}) {
      backward_from<kLayers - 1, first>(parameters, x, tape, dy, dx, gradients, scratch, context);
    }
  };

 private:
  template <int index>
  using InputOf = ConstView<typename Layer<index>::Input>;
  template <int index>
  using OutputOf = View<typename Layer<index>::Output>;

  // A layer's call, as one stage.
  template <int index>
  ATTUNE_INLINE static detail::ForwardResult<Layer<index>> forward_inside(const auto& context,
                                                                          auto&&... arguments) {
    return context.inside(
        [&]() ATTUNE_INLINE_LAMBDA { return detail::forward_in<Layer<index>>(context, arguments...); });
  }
  template <int index>
  ATTUNE_INLINE static void backward_inside(const auto& context, auto&&... arguments) {
    context.inside([&]() ATTUNE_INLINE_LAMBDA { detail::backward_in<Layer<index>>(context, arguments...); });
  }

  template <int index>
  ATTUNE_INLINE static detail::ForwardResult<Layer<index>> infer_from(const auto& parameters,
                                                                      InputOf<index> x, View<Output> y,
                                                                      InferenceScratch& scratch,
                                                                      const auto& context) {
    auto&& own = parameters.template layer<index>();
    auto& layer_scratch = scratch.layers.template of_layer<index>();
    if constexpr (index + 1 == kLayers) {
      return forward_inside<index>(context, own, x, y, layer_scratch);
    } else {
      const auto next = scratch.layers.template behind<typename Layer<index>::Output, index>();
      return detail::then(
          [&]() ATTUNE_INLINE_LAMBDA { return forward_inside<index>(context, own, x, next, layer_scratch); },
          [&]() ATTUNE_INLINE_LAMBDA { infer_from<index + 1>(parameters, next, y, scratch, context); });
    }
  }

  template <int index, class Gradients>
  ATTUNE_INLINE static detail::ForwardResult<Layer<index>> forward_from(const auto& parameters,
                                                                        InputOf<index> x, View<Output> y,
                                                                        TapeOf<Gradients>& tape,
                                                                        ScratchOf<Gradients>& scratch,
                                                                        const auto& context) {
    const OutputOf<index> to = [&] {
      if constexpr (index + 1 == kLayers) {
        return y;
      } else {
        return between<index>(tape, scratch);
      }
    }();
    auto&& own = parameters.template layer<index>();
    auto& layer_scratch = scratch.layers.template of_layer<index>();
    const auto through = [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (index < kInferred) {
        return forward_inside<index>(context, own, x, to, layer_scratch);
      } else {
        auto&& layer_tape = detail::member<index>(tape.layers);
        return forward_inside<index>(context, own, x, to, layer_tape, layer_scratch);
      }
    };
    if constexpr (index + 1 == kLayers) {
      return through();
    } else {
      return detail::then(through, [&]() ATTUNE_INLINE_LAMBDA {
        forward_from<index + 1>(parameters, to, y, tape, scratch, context);
      });
    }
  }

  // The output of a layer except the last: on the tape, or in scratch if backward does not read it. Scratch
  // is overwritten by then.
  template <int index, class Gradients>
  ATTUNE_INLINE static OutputOf<index> between(TapeOf<Gradients>& tape, ScratchOf<Gradients>& scratch) {
    if constexpr (OfLayers::template works_in_place<Gradients, index + 1>()) {
      return between<index + 1>(tape, scratch);
    } else if constexpr (OfLayers::template kKeepsOutput<Gradients, index>) {
      return detail::member<index>(tape.between);
    } else {
      return scratch.layers.template behind<typename Layer<index>::Output, index>();
    }
  }

  // The gradient of that output.
  template <int index, class Gradients>
  ATTUNE_INLINE static OutputOf<index> gradient_between(TapeOf<Gradients>& tape,
                                                        ScratchOf<Gradients>& scratch) {
    if constexpr (OfLayers::template kGradientInPlace<Gradients, index>) {
      return between<index>(tape, scratch);
    } else {
      return scratch.layers.template behind<typename Layer<index>::Output, index>();
    }
  }

  template <int index, int first = 0, class Gradients, class Kept, class Dx>
  ATTUNE_INLINE static void backward_from(const auto& parameters, const auto& x, TapeOf<Kept>& tape,
                                          ConstView<typename Layer<index>::Output> dy, Dx dx,
                                          Gradients& gradients, ScratchOf<Kept>& scratch,
                                          const auto& context) {
    if constexpr (index >= kInferred) {
      auto&& own = parameters.template layer<index>();
      auto&& gradient = gradients.template layer<index>();
      auto&& layer_tape = detail::member<index>(tape.layers);
      auto& layer_scratch = scratch.layers.template of_layer<index>();
      if constexpr (index == 0) {
        backward_inside<0>(context, own, x, layer_tape, dy, dx, gradient, layer_scratch);
      } else {
        const InputOf<index> before = between<index - 1>(tape, scratch);
        if constexpr (!kAsked<Dx> &&
                      (std::max)(first, kFirstReached<Gradients, decltype(context)>) >= index) {
          backward_inside<index>(context, own, before, layer_tape, dy, dx, gradient, layer_scratch);
          context.stage([&]() ATTUNE_INLINE_LAMBDA { skip_masks_before<index>(tape); });
        } else {
          const auto d_before = gradient_between<index - 1>(tape, scratch);
          backward_inside<index>(context, own, before, layer_tape, dy, d_before, gradient, layer_scratch);
          backward_from<index - 1, first>(parameters, x, tape,
                                          ConstView<typename Layer<index - 1>::Output>(d_before), dx,
                                          gradients, scratch, context);
        }
      }
    }
  }

  // Layers that backward does not reach also advance to the masks of the next sequence.
  template <int end, class Gradients>
  static constexpr void skip_masks_before(TapeOf<Gradients>& tape) {
    OfLayers::for_each_index([&tape]<int index>() {
      if constexpr (index < end && detail::kDropsIn<typename KeptOf<Gradients, index>::Tape>) {
        skip_masks(detail::member<index>(tape.layers), 1);
      }
    });
  }

  static_assert(OfLayers::kAllFit);
};

}  // namespace ATTUNE_NAMESPACE
