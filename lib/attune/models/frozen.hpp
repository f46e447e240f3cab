// What is trained is part of a model's type: parts of it keep constant parameters.
//
//   constexpr Backbone::Parameters kBackbone = …;                                            // flash
//   using Model = Sequential<Frozen<Backbone, kBackbone>, Linear<LinearShape{1, 16, 10}>>;   // the head
//   using Tuned = BiasesAndNorms<Whole, kWhole>;                                             // a part of all
//
// A Trainer of such a model has parameters, gradients, moments and a tape for what is trained alone, and the
// rest of backward is not in its firmware. The constants stay where they are.
#pragma once

#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// `Layer` with constant parameters. At the front of a Sequential it is only inferred: nothing is taped and
/// nothing dropped. Behind a layer that is trained it hands dx on to that, and drops what its shape says.
template <class Layer, const typename Layer::Parameters& kParameters>
struct Frozen {
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  struct WithScalar;  // constants have one scalar
  static constexpr bool kFrozen = true;
  using Parameters = NoParameters;
  using Nothing = detail::SetOf<Layer, Untrained, Untrained>;  // the gradients of it
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kReadsInput<Layer, Nothing>;
  using Tape = detail::TapeOf<Layer, Nothing>;
  using Scratch = detail::ScratchOf<Layer, Nothing>;
  using InferenceScratch = typename Layer::InferenceScratch;

  using InputView = detail::ConstView<Input>;
  using InputGradientView = typename detail::InputGradientOf<Layer>::View;
  using OutputView = detail::MutableView<Output>;
  using OutputGradientView = detail::ConstView<Output>;

  /// Inference; a Status where the layer takes token ids. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static detail::Outcome<Layer> forward(const Parameters&, InputView x, OutputView y,
                                        InferenceScratch& scratch, const Mask& mask = {}) {
    return detail::forward_through<Layer>(mask, kParameters, x, y, scratch);
  }
  /// Training of what stands before it. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static detail::Outcome<Layer> forward(const Parameters&, InputView x, OutputView y, Tape& tape,
                                        Scratch& scratch, const Mask& mask = {}) {
    return detail::forward_through<Layer>(mask, kParameters, x, y, tape, scratch);
  }
  /// dx from dy, overwritten. The tape is used up. `dx` may overlap neither `dy` nor `x`.
  static void backward(const Parameters&, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters&, Scratch& scratch) {
    static_assert(detail::kHasSets<Layer>,
                  "attune::Frozen: behind what is trained, the layer, and each one in it, needs "
                  "ParametersOf<Matrix, Vector>: a set that has nothing in the place of its gradients");
    Nothing nothing;
    Layer::backward(kParameters, x, tape, dy, dx, nothing, scratch);
  }
  /// The same where nobody asks for dx: the tape goes on to the next sequence's masks of dropout.
  static void backward(const Parameters&, InputView, Tape& tape, OutputGradientView, Parameters&, Scratch&) {
    skip_masks(tape, 1);
  }
};

/// `Layer`, of which biases and normalisations are trained, starting from those in `kParameters`; weights
/// stay constant (Ben Zaken et al., "BitFit: Simple Parameter-efficient Fine-tuning for Transformer-based
/// Masked Language-models", 2022, with the weights of normalisations beside their biases). A call keeps a
/// pointer for every tensor of Layer on the stack.
template <class Layer, const typename Layer::Parameters& kParameters>
struct BiasesAndNorms {
  static_assert(detail::kHasSets<Layer>,
                "attune::BiasesAndNorms: the layer, and each one in it, needs ParametersOf<Matrix, Vector>: "
                "sets of anything else than tensors, as attune's layers have them");

  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  template <class Other>
  struct WithScalar;  // constants have one scalar
  using Trained = detail::SetOf<Layer, Untrained, Tensor>;
  static_assert(!std::is_empty_v<Trained>,
                "attune::BiasesAndNorms: the layer has no bias and no normalisation to train; where nothing "
                "of it is trained, it is Frozen");
  /// Biases and normalisations alone, by the names that they have in Layer.
  struct Parameters : Trained {
    /// Those of kParameters, whatever the initialiser.
    template <class Initialiser>
    void initialise(const Initialiser&, Rng&) {
      for_each_tensor([](const TensorPath&, auto& trained, const auto& initial) { trained = initial; },
                      static_cast<Trained&>(*this), kParameters);
    }
  };
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kReadsInput<Layer, Trained>;
  using Tape = detail::TapeOf<Layer, Trained>;
  using Scratch = detail::ScratchOf<Layer, Trained>;
  using InferenceScratch = typename Layer::InferenceScratch;

  using InputView = detail::ConstView<Input>;
  using InputGradientView = typename detail::InputGradientOf<Layer>::View;
  using OutputView = detail::MutableView<Output>;
  using OutputGradientView = detail::ConstView<Output>;

  /// Inference; a Status where the layer takes token ids. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static detail::Outcome<Layer> forward(const Parameters& trained, InputView x, OutputView y,
                                        InferenceScratch& scratch, const Mask& mask = {}) {
    return detail::forward_through<Layer>(mask, all(trained), x, y, scratch);
  }
  /// Training. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask>
  static detail::Outcome<Layer> forward(const Parameters& trained, InputView x, OutputView y, Tape& tape,
                                        Scratch& scratch, const Mask& mask = {}) {
    return detail::forward_through<Layer>(mask, all(trained), x, y, tape, scratch);
  }
  /// dx from dy, overwritten; gradients accumulate. The tape is used up. `dx` may overlap neither `dy` nor
  /// `x`.
  static void backward(const Parameters& trained, InputView x, Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters& gradients, Scratch& scratch) {
    Layer::backward(all(trained), x, tape, dy, dx, static_cast<Trained&>(gradients), scratch);
  }
  /// The same where nobody asks for dx.
  static void backward(const Parameters& trained, InputView x, Tape& tape, OutputGradientView dy,
                       Parameters& gradients, Scratch& scratch) {
    Layer::backward(all(trained), x, tape, dy, static_cast<Trained&>(gradients), scratch);
  }

 private:
  using All = detail::SetOf<Layer, Reference, Reference>;

  // Every tensor of Layer: in RAM if it is trained, else the constant.
  static All all(const Parameters& trained) {
    All all;
    All::visit(
        [](const TensorPath&, auto& reference, const auto& constant, const auto& own) {
          if constexpr (detail::kTrained<decltype(own)>) {
            reference.first = own.data();
          } else {
            reference.first = constant.data();
          }
        },
        static_cast<const TensorPath*>(nullptr), all, kParameters, static_cast<const Trained&>(trained));
    return all;
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
