// Layers in sequence: y = f_n(… f_2(f_1(x))).
//
//   using Model = Sequential<Linear<LinearShape{8, 8, 16}>, LearnedPositions<PositionShape{8, 16}>,
//                            Repeat<2, EncoderLayer<kEncoder>>, Pooling<PoolingShape{8, 16}>,
//                            Linear<LinearShape{1, 16, 10}>>;
//
// The model is a layer itself. The matrix between two layers is on the tape if the second one's backward
// reads it, and its gradient overwrites it if allowed. A ReLU overwrites its input on the tape with its
// output. Otherwise both are in scratch while one of the two layers runs. A layer's scratch is dead when the
// next one starts, so all layers share it: sequence_program.hpp lists the steps and their values, and
// core/planner.hpp finds the places. A mask goes to every layer that takes one. Frozen layers at the front
// run inference only.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/sequence_program.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// Layers in sequence.
template <detail::CheckedLayer... Layers>
class Sequential : public detail::Steps<Sequential<Layers...>>, public detail::Passes<Sequential<Layers...>> {
 public:
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  static_assert(detail::Holds<(kLayers > 0 && kLayers <= detail::kMaxLayers)>,
                "attune::Sequential: use 1 to 24 layers");

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
  using ParametersOf = typename detail::LayerSets<Layers...>::template ParametersOf<Matrix, Vector>;

  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput =
      detail::ReadsInput<Layer<0>,
                         std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<0>())>>;
  static constexpr Abilities kAbilities = detail::kAbilitiesOfAll<Layers...>;

 private:
  using Values = detail::SequenceValues<kLayers, false>;
  using Trace = detail::SequenceTrace<kLayers, false>;

  template <class Gradients, int index>
  using GradientsOf = std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<index>())>;

  // Whether a layer has no trained parameters and no dropout.
  template <class Each>
  static constexpr bool kFixed = std::is_empty_v<typename Each::Parameters> &&
                                 (detail::IsFrozen<Each> || !detail::DropsIn<typename Each::Tape>);
  // The number of layers at the front that run inference only in training: up to the last Frozen one before
  // the first that is not fixed.
  static constexpr int kInferred = [] {
    const bool fixed[] = {kFixed<Layers>...};
    const bool frozen[] = {detail::IsFrozen<Layers>...};
    int count = 0;
    for (int i = 0; i < kLayers && fixed[i]; ++i) {
      if (frozen[i]) count = i + 1;
    }
    return count;
  }();
  // The first trained layer. Earlier layers need no gradient unless dx is requested.
  template <class Gradients>
  static constexpr int kFirstTrained = [] {
    int first = kLayers - 1;
    detail::for_each_index<kLayers>([&first]<int index>() {
      if constexpr (!std::is_empty_v<GradientsOf<Gradients, index>>) first = detail::smaller(first, index);
    });
    return first;
  }();

  // Memory of a layer that trains, and of one that only infers.
  template <class Gradients, int index>
  struct TrainedOf {
    using Own = GradientsOf<Gradients, index>;
    using Tape = detail::TapeOf<Layer<index>, Own>;
    using Scratch = detail::ScratchOf<Layer<index>, Own>;
    static constexpr detail::LayerInSequence kFacts{
        .output = detail::kExtent<typename Layer<index>::Output>,
        .scratch = detail::kExtent<Scratch>,
        .tape = detail::kExtent<Tape>,
        .reads_input = detail::ReadsInput<Layer<index>, Own>,
        .may_read_output = detail::kAbilities<Layer<index>>.backward_may_read_output,
        .gradient_may_be_input = detail::GradientReplacesInput<Layer<index>, Own>};
  };
  template <class Scratch, class Matrix, bool in_place>
  static constexpr detail::LayerInSequence kInferredFacts{.output = detail::kExtent<Matrix>,
                                                          .scratch = detail::kExtent<Scratch>,
                                                          .output_may_be_input = in_place,
                                                          .runs_backward = false};
  template <int index>
  struct InferredOf {
    using Tape = detail::NoMember<13>;
    using Scratch = typename Layer<index>::InferenceScratch;
    static constexpr detail::LayerInSequence kFacts =
        kInferredFacts<Scratch, typename Layer<index>::Output, detail::ReplacesInput<Layer<index>>>;
  };
  template <class Gradients, int index>
  using MemoryOf = std::conditional_t<(index < kInferred), InferredOf<index>, TrainedOf<Gradients, index>>;
  // The places of all values.
  template <class Gradients, class Indices = std::make_integer_sequence<int, kLayers>>
  struct All;
  template <class Gradients, int... index>
  struct All<Gradients, std::integer_sequence<int, index...>> {
    static constexpr auto kPlan = detail::Plan(Trace({MemoryOf<Gradients, index>::kFacts...}).training());
    using Tapes = detail::TapesOfLayers<typename MemoryOf<Gradients, index>::Tape...>;
    using Outputs = detail::Members<
        detail::MemberIf<kPlan.places.keeps(Values::output(index)), typename Layer<index>::Output, 13>...>;
  };
  static constexpr auto kInferencePlan =
      detail::Plan(Trace({kInferredFacts<typename Layers::InferenceScratch, typename Layers::Output,
                                         detail::ReplacesInput<Layers>>...})
                       .inference());
  // The first layer that attends to a memory (models/encoder_decoder.hpp).
  static constexpr int kFirstOfMemory = detail::first_true({detail::attends_to_memory<Layers>()...});
  // The first layer that backward reaches without dx.
  template <class Gradients, class Call>
  static constexpr int kFirstReached = detail::smaller(kFirstTrained<Gradients>,
                                                       detail::GivesMemoryGradient<std::remove_cvref_t<Call>>
                                                           ? kFirstOfMemory
                                                           : kLayers - 1);

 public:
  /// Whether a layer is Frozen, and the others have no parameters and no dropout.
  static constexpr bool kFrozen = (detail::IsFrozen<Layers> || ...) && (kFixed<Layers> && ...);
  /// Whether decoder layers run inference only in training, so that their memory gets no gradient.
  static constexpr bool kInfersMemory =
      kFirstOfMemory < kInferred || (detail::infers_memory<Layers>() || ...);

  /// The layers' tapes, and the matrices between them that backward reads.
  template <class Gradients>
  struct TapeOf : detail::TapeOfParts<typename All<Gradients>::Tapes> {
    [[no_unique_address]] typename All<Gradients>::Outputs between;

    /// The address of a value of the program, or null if it has another memory. For checked mode.
    [[nodiscard]] const void* place(int value) const {
      const void* place = nullptr;
      detail::for_each_index<kLayers>([&]<int index>() {
        if (value == Values::tape(index)) place = detail::address_of_member<index>(this->layers);
        if (value == Values::output(index)) place = detail::address_of_member<index>(between);
      });
      return place;
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf : detail::SequenceScratch<All<Gradients>::kPlan> {};
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch : detail::SequenceScratch<kInferencePlan> {};

  /// Token by token (execution/stream.hpp), if each layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream : detail::LayerSets<Layers...>::template Streams<tokens, cache> {
   private:
    template <class Each>
    static constexpr auto kFacts =
        kInferredFacts<typename detail::StreamOf<Each, tokens, cache>::Scratch,
                       detail::StepOutput<Each, tokens>,
                       (detail::SameShape<Each> && detail::StepsInPlace<Each, tokens, cache>)>;
    static constexpr auto kPlan = detail::Plan(Trace({kFacts<Layers>...}).inference());

   public:
    struct Scratch : detail::SequenceScratch<kPlan> {};
    template <int index = 0>
    ATTUNE_INLINE static detail::ForwardResult<Layer<index>> step(
        std::uint64_t position, const auto& parameters, ConstView<detail::StepInput<Layer<index>, tokens>> x,
        View<detail::StepOutput<Sequential, tokens>> y, auto& memory, Scratch& scratch, const auto&... more) {
      const auto to = output<index, detail::StepOutput<Layer<index>, tokens>>(y, scratch, scratch);
      const auto through = [&]() ATTUNE_INLINE_LAMBDA {
        using OfLayer = typename detail::StreamOf<Layer<index>, tokens, cache>::Scratch;
        auto&& own = scratch.template at<OfLayer, Values::forward_scratch(index)>();
        return Stream::template step_of<index>(position, parameters, x, to, memory, own, more...);
      };
      return detail::then(through, [&]() ATTUNE_INLINE_LAMBDA {
        if constexpr (index + 1 < kLayers) {
          step<index + 1>(position, parameters, to, y, memory, scratch, more...);
        }
      });
    }
  };

  /// void, or a Status if the first layer takes token ids: kInvalidToken, with nothing written, if an id is
  /// outside the vocabulary.
  using ForwardResult = detail::ForwardResult<Layer<0>>;

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<Sequential>::forward, detail::Passes<Sequential>::backward;

  /// Training that begins at a layer: forward from the input x of layer `first`, and backward to its
  /// parameters. Tape, scratch and gradients are the model's; earlier layers are neither computed nor get a
  /// gradient, and advance to the next sequence's dropout masks.
  template <int first>
    requires(first >= 0 && first < kLayers)
  struct From {
    using Scalar = typename Sequential::Scalar;          ///< the model's
    using Input = typename Layer<first>::Input;          ///< of layer `first`
    using Output = typename Sequential::Output;          ///< the model's
    using Parameters = typename Sequential::Parameters;  ///< of all layers
    /// Of the computed layers.
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
        const OutputOf<first - 1> input(between<Values::output(first - 1)>(tape, scratch));
        context.stage([&]() ATTUNE_INLINE_LAMBDA {
          for (int i = 0; i < Input::rows; ++i) {
            for (int j = 0; j < Input::cols; ++j) input(i, j) = x(i, j);
          }
        });
        return forward_from<first>(parameters, input, y, tape, scratch, context);
      }
    }
    /// dy is overwritten; gradients accumulate. Uses up the tape.
    template <class Set, class GradientSet, class Gradients, AnyContext Call = Context<>>
    static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                         ConstView<Output> dy, NoGradient dx, Gradients& gradients,
                         ScratchOf<GradientSet>& scratch, const Call& context = {}) {
      backward_from<kLayers - 1, first>(parameters, x, tape, dy, dx, gradients, scratch, context);
    }
  };

 private:
  template <int index>
  using InputOf = ConstView<typename Layer<index>::Input>;
  template <int index>
  using OutputOf = View<typename Layer<index>::Output>;

  friend detail::Passes<Sequential>;
  ATTUNE_INLINE static ForwardResult run(const auto& context, const auto& parameters, const auto& x,
                                         const auto& y, auto& scratch, auto&... tape) {
    NoTape none;
    return forward_from<0>(parameters, x, y, detail::on_tape(none, tape...), scratch, context);
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    static_assert(detail::Holds<(!kWanted<decltype(dx)> || kInferred == 0)>,
                  "attune::Sequential: a model that begins with a Frozen layer keeps no tape for dx; list "
                  "its layers in the outer Sequential if earlier layers train");
    backward_from<kLayers - 1>(parameters, x, tape, dy, dx, gradients, scratch, context);
  }

  // A layer's call: a step of the program, as one stage.
  template <int index>
  ATTUNE_INLINE static detail::ForwardResult<Layer<index>> forward_step(const auto& context, auto& tape,
                                                                        auto& scratch, auto&&... arguments) {
    return context.inside(detail::as_step<Layer<index>>(
        context, index, tape, scratch,
        [&]() ATTUNE_INLINE_LAMBDA { return detail::forward_in<Layer<index>>(context, arguments...); }));
  }
  template <int index>
  ATTUNE_INLINE static void backward_step(const auto& context, auto& tape, auto& scratch,
                                          auto&&... arguments) {
    context.inside(detail::as_step<Layer<index>>(
        context, 2 * kLayers - 1 - index, tape, scratch,
        [&]() ATTUNE_INLINE_LAMBDA { detail::backward_in<Layer<index>>(context, arguments...); }));
  }

  // The memory of a layer in a pass.
  struct NoTape {
    static const void* place(int) { return nullptr; }
  };
  template <int index, class Gradients>
  static MemoryOf<Gradients, index> memory_of(const TapeOf<Gradients>&);
  template <int index>
  static InferredOf<index> memory_of(const NoTape&);

  // Forward from a layer on.
  template <int index, class Tape, class AnyScratch>
  ATTUNE_INLINE static detail::ForwardResult<Layer<index>> forward_from(const auto& parameters,
                                                                        InputOf<index> x, View<Output> y,
                                                                        Tape& tape, AnyScratch& scratch,
                                                                        const auto& context) {
    using Memory = decltype(memory_of<index>(tape));
    const auto to = output<index, typename Layer<index>::Output>(y, tape, scratch);
    auto&& own = parameters.template layer<index>();
    auto&& layer_scratch = scratch.template at<typename Memory::Scratch, Values::forward_scratch(index)>();
    const auto through = [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (std::is_same_v<Memory, InferredOf<index>>) {
        return forward_step<index>(context, tape, scratch, own, x, to, layer_scratch);
      } else {
        auto&& layer_tape = detail::member<index>(tape.layers);
        return forward_step<index>(context, tape, scratch, own, x, to, layer_tape, layer_scratch);
      }
    };
    return detail::then(through, [&]() ATTUNE_INLINE_LAMBDA {
      if constexpr (index + 1 < kLayers) {
        forward_from<index + 1>(parameters, to, y, tape, scratch, context);
      }
    });
  }

  // The output of a layer; in inference it may be in y.
  template <int index, class Matrix>
  ATTUNE_INLINE static View<Matrix> output(const auto& y, auto& tape, auto& scratch) {
    constexpr int kValue = index + 1 == kLayers ? Values::kY : Values::output(index);
    constexpr auto kMemory = std::remove_reference_t<decltype(scratch)>::kPlan.places.memory[kValue];
    if constexpr (kMemory == detail::ValueMemory::kCaller || kMemory == detail::ValueMemory::kResult) {
      return View<Matrix>(y.data);
    } else {
      return View<Matrix>(between<kValue>(tape, scratch));
    }
  }
  // The first number of a matrix between two layers, or of its gradient: on the tape or in scratch.
  template <int value>
  ATTUNE_INLINE static Scalar* between(auto& tape, auto& scratch) {
    constexpr const auto& kPlaces = std::remove_reference_t<decltype(scratch)>::kPlan.places;
    if constexpr (kPlaces.memory[value] == detail::ValueMemory::kTape) {
      return detail::member<Values::layer(kPlaces.owner[value])>(tape.between).data();
    } else {
      return &scratch.template at<Scalar, value>();
    }
  }

  template <int index, int first = 0, class Gradients, class GradientSet, class Dx>
  ATTUNE_INLINE static void backward_from(const auto& parameters, const auto& x, TapeOf<GradientSet>& tape,
                                          ConstView<typename Layer<index>::Output> dy, Dx dx,
                                          Gradients& gradients, ScratchOf<GradientSet>& scratch,
                                          const auto& context) {
    if constexpr (index >= kInferred) {
      auto&& own = parameters.template layer<index>();
      auto&& gradient = gradients.template layer<index>();
      auto&& layer_tape = detail::member<index>(tape.layers);
      auto&& layer_scratch =
          scratch
              .template at<typename MemoryOf<GradientSet, index>::Scratch, Values::backward_scratch(index)>();
      const auto step = [&](const auto& before, const auto& to) ATTUNE_INLINE_LAMBDA {
        backward_step<index>(context, tape, scratch, own, before, layer_tape, dy, to, gradient,
                             layer_scratch);
      };
      // The first layer that backward reaches.
      constexpr int kEnd = detail::larger(
          kInferred, kWanted<Dx> ? 0 : detail::larger(first, kFirstReached<Gradients, decltype(context)>));
      if constexpr (index == 0) {
        step(x, dx);
      } else {
        const InputOf<index> before(between<Values::output(index - 1)>(tape, scratch));
        if constexpr (index > kEnd) {
          const OutputOf<index - 1> d_before(between<Values::gradient(index - 1)>(tape, scratch));
          step(before, d_before);
          backward_from<index - 1, first>(parameters, x, tape,
                                          ConstView<typename Layer<index - 1>::Output>(d_before), dx,
                                          gradients, scratch, context);
        } else {
          step(before, dx);
          // Layers that backward does not reach also advance to the masks of the next sequence.
          context.stage([&]() ATTUNE_INLINE_LAMBDA {
            detail::for_each_index<index>([&]<int unreached>() {
              auto&& skipped = detail::member<unreached>(tape.layers);
              skip_masks(skipped, 1);
            });
          });
        }
      }
    }
  }

  static_assert(detail::check_sequence<Layers...>());
};

}  // namespace ATTUNE_NAMESPACE
