// One layer several times, each with its own parameters, in one copy of the code.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/sequence_program.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// An invalid number is one error. The class then has one layer.
template <int count>
constexpr int checked_count() {
  constexpr bool kValid = count > 0 && count <= kMaxLayers;
  static_assert(Holds<kValid>, "attune::Repeat and SharedRepeat: use 1 to 24 layers");
  return kValid ? count : 1;
}

/// The scratch of a layer, and the matrices between layers that are not on the tape.
template <class OfLayer, const auto& plan>
struct ScratchOfEach : SequenceScratch<plan> {
  template <int value>
  decltype(auto) layer() {
    return this->template at<OfLayer, value>();
  }
};

}  // namespace detail

/// `count` equal layers in sequence, in one copy of their code. Each layer's output is the next layer's
/// input.
template <int count, detail::CheckedLayer Layer>
class Repeat : public detail::Steps<Repeat<count, Layer>>, public detail::Passes<Repeat<count, Layer>> {
  static constexpr int kCount = detail::checked_count<count>();  // of layers

 public:
  static_assert(detail::check_next<Layer>());

  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  using WithScalar = Repeat<count, typename detail::WithScalarOf<Layer, Other>::type>;
  using Parts = LayerList<Layer>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Repeat", kCount, kFingerprintOf<Layer>);

  /// layers[i] has the name "i" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Each = detail::SetOf<Layer, Matrix, Vector>;
    [[no_unique_address]] detail::Copies<Each, kCount> layers;
    ATTUNE_FIELDS(Layers(layers))
  };
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = detail::ReadsInput<Layer, typename Gradients::Each>;
  static constexpr Abilities kAbilities = detail::with(
      detail::kAbilitiesOfAll<Layer>, &Abilities::output_may_be_input, detail::ReplacesInput<Layer>,
      &Abilities::gradient_may_be_input, detail::GradientMayBeInput<Layer>, &Abilities::updates_in_place,
      detail::UpdatesInPlace<Layer>);

 private:
  using Values = detail::SequenceValues<kCount, true>;
  using Trace = detail::SequenceTrace<kCount, true>;
  struct Outputs {
    Output outputs[std::size_t{kCount > 1 ? kCount - 1 : 1}];
  };
  template <class Gradients>
  using EachTape = detail::TapeOf<Layer, typename Gradients::Each>;
  template <class Gradients>
  using EachScratch = detail::ScratchOf<Layer, typename Gradients::Each>;
  // The places of all values.
  template <class Gradients>
  static constexpr auto kPlan = detail::Plan(
      Trace({{.output = detail::kExtent<Output>,
              .scratch = detail::kExtent<EachScratch<Gradients>>,
              .tape = detail::kExtent<EachTape<Gradients>>,
              .reads_input = kReadsInput<Gradients>,
              .gradient_may_be_input = detail::GradientReplacesInput<Layer, typename Gradients::Each>}})
          .training());
  template <class Scratch, class Matrix, bool in_place>
  static constexpr auto kPlanOfInference = detail::Plan(Trace({{.output = detail::kExtent<Matrix>,
                                                                .scratch = detail::kExtent<Scratch>,
                                                                .output_may_be_input = in_place}})
                                                            .inference());
  static constexpr const auto& kInferencePlan =
      kPlanOfInference<typename Layer::InferenceScratch, Output, kAbilities.output_may_be_input>;

 public:
  /// The layers' tapes, and the matrices between them that backward reads.
  template <class Gradients>
  struct TapeOf : detail::TapeOfParts<detail::TapesOfCopies<EachTape<Gradients>, kCount>> {
    [[no_unique_address]] detail::MemberIf<kPlan<Gradients>.places.keeps(Values::output()), Outputs, 12>
        between;

    /// The address of a value of the program, or null if it has another memory. For checked mode.
    [[nodiscard]] const void* place(int value) const {
      if (value == Values::tape() && !std::is_empty_v<EachTape<Gradients>>) return &this->layers;
      if (value == Values::output() && !std::is_empty_v<decltype(between)>) return &between;
      return nullptr;
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf : detail::ScratchOfEach<EachScratch<Gradients>, kPlan<Gradients>> {};
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch : detail::ScratchOfEach<typename Layer::InferenceScratch, kInferencePlan> {};

  /// Token by token (execution/stream.hpp), if the layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream {
    using Each = detail::StreamOf<Layer, tokens, cache>;
    using Memory = detail::Copies<detail::StreamMemoryOf<Layer, cache>, kCount>;
    static constexpr std::uint64_t kMaxTokens = detail::kMaxTokens<Layer, cache>;
    /// Whether y of a step may be x.
    static constexpr bool kOutputMayBeInput = detail::StepsInPlace<Layer, tokens, cache>;
    struct Scratch
        : detail::ScratchOfEach<typename Each::Scratch,
                                kPlanOfInference<typename Each::Scratch, detail::StepOutput<Layer, tokens>,
                                                 kOutputMayBeInput>> {};
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<detail::StepInput<Layer, tokens>> x, View<detail::StepOutput<Layer, tokens>> y,
                     Memory& memory, Scratch& scratch, const auto&... more) {
      auto&& layer_scratch = scratch.template layer<Values::forward_scratch()>();
      for_each_layer(Context<>{}, x, y, scratch, scratch,
                     [&](int i, auto from, auto to) ATTUNE_INLINE_LAMBDA {
                       auto&& layer_memory = memory[i];
                       detail::step_in<Layer, cache, tokens>(position, parameters.layers[i], from, to,
                                                             layer_memory, layer_scratch, more...);
                     });
    }
    static void remember(const auto& parameters, const auto& remembered, Memory& memory) {
      for (int i = 0; i < kCount; ++i) Each::remember(parameters.layers[i], remembered, memory[i]);
    }
  };

  /// `y` and `dx` may be `x` if the layer allows it, `y` in inference only. `dx` may not overlap `dy`.
  using detail::Passes<Repeat>::forward, detail::Passes<Repeat>::backward;

 private:
  friend detail::Passes<Repeat>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    auto&& layer_scratch = scratch.template layer<Values::forward_scratch()>();
    for_each_layer(context, x, y, detail::on_tape(scratch, tape...), scratch,
                   [&](int i, auto from, auto to) ATTUNE_INLINE_LAMBDA {
                     const auto run_layer = [&](auto&&... own) ATTUNE_INLINE_LAMBDA {
                       detail::forward_in<Layer>(context, parameters.layers[i], from, to, own...,
                                                 layer_scratch);
                     };
                     run_layer(tape.layers[i]...);
                   });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    const auto run = [&](int i, ConstView<Input> from, auto to) ATTUNE_INLINE_LAMBDA {
      backward_one(i, parameters, from, tape, place_of<Values::gradient()>(i, tape, scratch, dy), to,
                   gradients, scratch, context);
    };
    if constexpr (kCount > 1) {
      context.template repeat<kCount - 1>([&](int done) ATTUNE_INLINE_LAMBDA {
        const int i = kCount - 1 - done;
        run(i, between<Values::output()>(i - 1, tape, scratch),
            between<Values::gradient()>(i - 1, tape, scratch));
      });
    }
    context.inside([&]() ATTUNE_INLINE_LAMBDA { run(0, x, dx); });
  }
  static void backward_one(int i, const auto& parameters, ConstView<Input> x, auto& tape,
                           ConstView<Output> dy, auto dx, auto& gradients, auto& scratch,
                           const auto& context) {
    auto&& layer_tape = tape.layers[i];
    auto&& gradient = gradients.layers[i];
    auto&& layer_scratch = scratch.template layer<Values::backward_scratch()>();
    detail::as_step<Layer>(context, 2 * kCount - 1 - i, tape, scratch, [&]() ATTUNE_INLINE_LAMBDA {
      detail::backward_in<Layer>(context, parameters.layers[i], x, layer_tape, dy, dx, gradient,
                                 layer_scratch);
    })();
  }

  // Calls forward(i, x, y) for each layer i, with its input and its output.
  template <class From, class To>
  ATTUNE_INLINE static void for_each_layer(const auto& context, From x, To y, auto& tape, auto& scratch,
                                           const auto& forward) {
    context.template repeat<kCount>([&](int i) ATTUNE_INLINE_LAMBDA {
      const From from = i == 0 ? x : From(place_of<Values::output()>(i - 1, tape, scratch, y));
      const To to = place_of<Values::output()>(i, tape, scratch, y);
      detail::as_step<Layer>(context, i, tape, scratch,
                             [&]() ATTUNE_INLINE_LAMBDA { forward(i, from, to); })();
    });
  }
  // The output of layer i, or its gradient. Of the last layer, and where layers overwrite their input, it is
  // `last`.
  template <int value, class To>
  ATTUNE_INLINE static To place_of(int i, auto& tape, auto& scratch, To last) {
    if constexpr (std::remove_reference_t<decltype(scratch)>::kPlan.places.life[value].used()) {
      if (i < kCount - 1) return between<value, Tensor<Scalar, To::rows, To::cols>>(i, tape, scratch);
    }
    return last;
  }
  // The same before the last layer: on the tape, or in scratch.
  template <int value, class Matrix = Output>
  ATTUNE_INLINE static View<Matrix> between(int i, auto& tape, auto& scratch) {
    constexpr auto kMemory = std::remove_reference_t<decltype(scratch)>::kPlan.places.memory[value];
    if constexpr (kMemory == detail::ValueMemory::kTape) {
      return tape.between.outputs[i];
    } else {
      return scratch.template copy<Matrix, value>(i);
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
