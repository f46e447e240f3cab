// What is trained is part of a model's type: parts of it keep constant parameters.
//
//   constexpr Backbone::Parameters kBackbone = …;                                            // flash
//   using Model = Sequential<Frozen<Backbone, kBackbone>, Linear<LinearShape{1, 16, 10}>>;   // the head
//   using Tuned = BiasesAndNorms<Whole, kWhole>;                                             // a part of all
//
// A Trainer of such a model has parameters, gradients, moments and a tape for what is trained alone, and the
// rest of backward is not in its firmware. The constants stay where they are, in any form (core/weights.hpp):
// tensors, or references into a file in flash. They may also be a static that is filled at run time, before
// the model is first used: the type holds its address, not its values.
#pragma once

#include <attune/core/weights.hpp>
#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

// A reference to what stands for a tensor: in RAM where it is trained, else the constant.
template <class Constant, class Own>
constexpr auto either([[maybe_unused]] const Constant& constant, [[maybe_unused]] const Own& own) {
  if constexpr (kTrained<Own>) {
    return reference_to(own);
  } else {
    return reference_to(constant);
  }
}
template <class Constant, class Own>
using Either = decltype(either(std::declval<const Constant&>(), std::declval<const Own&>()));

}  // namespace detail

/// `Layer` with constant parameters, but for those that are trained: what stands for them in Matrix and
/// Vector, Tensor or Untrained. A call keeps a pointer for every tensor of Layer on the stack where something
/// is trained.
///
/// With nothing trained, at the front of a Sequential it is only inferred: nothing is taped and nothing
/// dropped. Behind a layer that is trained it hands dx on to that, and drops what its shape says.
template <detail::CheckedLayer Layer, const auto& kConstants, template <class, int, int> class Matrix,
          template <class, int, int> class Vector>
struct PartlyTrained {
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  /// Not of the constants' values.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("constant", kFingerprintOf<Layer>, detail::fingerprint_of_tensors<Layer>());
  template <class Other>
  struct WithScalar;  // constants have one scalar
  using Trained = detail::SetOf<Layer, Matrix, Vector>;
  /// Whether nothing is trained.
  static constexpr bool kFrozen =
      std::is_empty_v<Matrix<Scalar, 1, 1>> && std::is_empty_v<Vector<Scalar, 1, 1>>;
  static constexpr bool kTakesMask = detail::kTakesMask<Layer>;
  static constexpr bool kTakesPaddingOnly = detail::kTakesPaddingOnly<Layer>;
  static_assert(kFrozen || detail::kHasSets<Layer>,
                "attune::BiasesAndNorms: the layer, and each one in it, needs ParametersOf<Matrix, Vector>: "
                "sets that have nothing in the place of its weights");
  static_assert(kFrozen || !std::is_empty_v<Trained>,
                "attune::BiasesAndNorms: the layer has no bias and no normalisation to train; take Frozen");

  struct TrainedParameters : Trained {
    /// Those of kConstants, whatever the initialiser.
    template <class Initialiser>
    void initialise(const Initialiser&, Rng&) {
      for_each_tensor(
          [](const TensorPath&, auto& trained, const auto& initial) {
            for (int i = 0; i < trained.rows; ++i) {
              for (int j = 0; j < trained.cols; ++j) trained(i, j) = view(initial)(i, j);
            }
          },
          static_cast<Trained&>(*this), kConstants);
    }
  };
  using Parameters = std::conditional_t<kFrozen, NoParameters, TrainedParameters>;
  template <class Gradients>
  static constexpr bool kReadsInput = detail::kReadsInput<Layer, Trained>;
  using Tape = detail::TapeOf<Layer, Trained>;
  using Scratch = detail::ScratchOf<Layer, Trained>;
  using InferenceScratch = typename Layer::InferenceScratch;

  /// Inference; a Status where the layer takes token ids. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static detail::Outcome<Layer> forward(const Parameters& trained, ConstView<Input> x, View<Output> y,
                                        InferenceScratch& scratch, const Mask& mask = {},
                                        const Pieces& pieces = {}) {
    return detail::forward_in<Layer>(pieces, mask, all(trained), x, y, scratch);
  }
  /// Training. `y` may not overlap `x`.
  template <AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static detail::Outcome<Layer> forward(const Parameters& trained, ConstView<Input> x, View<Output> y,
                                        Tape& tape, Scratch& scratch, const Mask& mask = {},
                                        const Pieces& pieces = {}) {
    return detail::forward_in<Layer>(pieces, mask, all(trained), x, y, tape, scratch);
  }
  /// dx from dy, overwritten; gradients accumulate. The tape is used up. `dx` may overlap neither `dy` nor
  /// `x`. Where nothing is trained and nobody asks for dx, the tape goes on to the next sequence's masks of
  /// dropout.
  template <class Dx, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void backward(const Parameters& trained, ConstView<Input> x, Tape& tape, ConstView<Output> dy,
                       Dx&& dx, Parameters& gradients, Scratch& scratch, const Mask& mask = {},
                       const Pieces& pieces = {}) {
    if constexpr (kFrozen && !kAsked<Dx>) {
      pieces([&]() ATTUNE_INLINE_LAMBDA { skip_masks(tape, 1); });
    } else if constexpr (kFrozen) {
      static_assert(detail::kHasSets<Layer>,
                    "attune::Frozen: behind what is trained, the layer, and each one in it, needs "
                    "ParametersOf<Matrix, Vector>: a set that has nothing in the place of its gradients");
      Trained nothing;
      detail::backward_in<Layer>(pieces, mask, kConstants, x, tape, dy, dx, nothing, scratch);
    } else {
      detail::backward_in<Layer>(pieces, mask, all(trained), x, tape, dy, dx,
                                 static_cast<Trained&>(gradients), scratch);
    }
  }

 private:
  using Form = typename detail::FormOf<std::remove_cvref_t<decltype(kConstants)>>::type;
  template <class S, int rows, int cols>
  using EitherMatrix = detail::Either<typename Form::template Matrix<S, rows, cols>, Matrix<S, rows, cols>>;
  template <class S, int rows, int cols>
  using EitherVector = detail::Either<typename Form::template Vector<S, rows, cols>, Vector<S, rows, cols>>;

 public:
  /// References to all of Layer's parameters: trained ones, and the constants.
  static constexpr decltype(auto) all([[maybe_unused]] const Parameters& trained) {
    if constexpr (kFrozen) {
      return (kConstants);
    } else {
      using All = detail::SetOf<Layer, EitherMatrix, EitherVector>;
      All all;
      All::visit([](const TensorPath&, auto& reference, const auto& constant,
                    const auto& own) { reference = detail::either(constant, own); },
                 static_cast<const TensorPath*>(nullptr), all, kConstants,
                 static_cast<const Trained&>(trained));
      return all;
    }
  }
};

/// `Layer` with constant parameters.
template <class Layer, const auto& kConstants>
using Frozen = PartlyTrained<Layer, kConstants, Untrained, Untrained>;

/// `Layer`, of which biases and normalisations are trained, starting from those in `kConstants`; weights stay
/// constant (Ben Zaken et al., "BitFit: Simple Parameter-efficient Fine-tuning for Transformer-based Masked
/// Language-models", 2022, with the weights of normalisations beside their biases).
template <class Layer, const auto& kConstants>
using BiasesAndNorms = PartlyTrained<Layer, kConstants, Untrained, Tensor>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
