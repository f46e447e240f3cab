// Models whose tape has 8 or 16 bits. The tape of a layer is packed after its forward, and unpacked before
// its backward (layers/packed_rows.hpp).
//
//   using Model = QuantizedTape<Sequential<Linear<kIn>, Repeat<6, EncoderLayer<kBlock>>, Pooling<kOut>>>;
//
// Scratch holds the floats of one layer at a time; in an encoder or decoder layer, of one branch. The tape
// includes the inputs of layers that backward reads, except the model's. Forward's output has the
// model's bits. Backward reads numbers that were rounded once, so gradients differ from the model's. They are
// the same on every target. Parameters, names and states have the model's bytes, in types of their own.
#pragma once

#include <attune/layers/packed_rows.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/encoder_decoder.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Packs the tape of any layer, and its input.
template <class Layer, TapePrecision precision>
struct PackedWhole : Layer {
  using typename Layer::InferenceScratch;
  using typename Layer::Scalar, typename Layer::Input, typename Layer::Output, typename Layer::Parameters;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr Abilities kAbilities =
      detail::with(detail::kAbilitiesInContext<Layer>, &Abilities::lanes, Lanes::kNone);

 private:
  template <int>
  struct None {};
  template <class Gradients>
  using OfLayer = detail::TapeOf<Layer, Gradients>;
  template <class Gradients>
  using Packed = typename QuantizedTapeOf<Layer, Gradients, precision>::type;
  // Whether the tape itself is kept, because the layer has no TapeIn.
  template <class Gradients>
  static constexpr bool kKeepsTape = std::is_same_v<Packed<Gradients>, OfLayer<Gradients>>;
  template <class Gradients>
  static constexpr bool kPacksInput = detail::kReadsInput<Layer, Gradients>;

 public:
  template <class Gradients>
  struct TapeOf : Packed<Gradients> {
    [[no_unique_address]] std::conditional_t<kPacksInput<Gradients>, PackedMatrix<precision, Input>, None<0>>
        x;
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] std::conditional_t<kKeepsTape<Gradients>, None<0>, OfLayer<Gradients>> tape;
    [[no_unique_address]] std::conditional_t<kPacksInput<Gradients>, Input, None<1>> x;
    [[no_unique_address]] detail::ScratchOf<Layer, Gradients> layer;
  };
  using Scratch = ScratchOf<Parameters>;

  /// Inference. Overlap is allowed as for the layer.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    detail::forward_in<Layer>(context, parameters, x, y, scratch);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<GradientSet>& tape,
                      ScratchOf<GradientSet>& scratch, const Call& context = {}) {
    Packed<GradientSet>& packed = tape;
    if constexpr (kPacksInput<GradientSet>) CopyTape::rows(context, tape.x, x);
    if constexpr (kKeepsTape<GradientSet>) {
      detail::forward_in<Layer>(context, parameters, x, y, packed, scratch.layer);
    } else {
      context.stage([&]() ATTUNE_INLINE_LAMBDA { copy_masks(packed, scratch.tape); });
      context.inside([&]() ATTUNE_INLINE_LAMBDA {
        detail::forward_in<Layer>(context, parameters, x, y, scratch.tape, scratch.layer);
      });
      copy_tape(context, packed, scratch.tape);
    }
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate. Uses up the tape. Overlap of `dx` and `dy`
  /// is allowed as for the layer.
  template <class Set = Parameters, class GradientSet, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                       ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<GradientSet>& scratch,
                       const Call& context = {}) {
    Packed<GradientSet>& packed = tape;
    if constexpr (kPacksInput<GradientSet>) {
      CopyTape::rows(context, scratch.x, tape.x);
      x = scratch.x;
    }
    if constexpr (kKeepsTape<GradientSet>) {
      detail::backward_in<Layer>(context, parameters, x, packed, dy, dx, gradients, scratch.layer);
    } else {
      copy_tape(context, scratch.tape, packed);
      context.inside([&]() ATTUNE_INLINE_LAMBDA {
        detail::backward_in<Layer>(context, parameters, x, scratch.tape, dy, dx, gradients, scratch.layer);
      });
      context.stage([&]() ATTUNE_INLINE_LAMBDA { copy_masks(scratch.tape, packed); });
    }
  }
};

// The same for an encoder layer, one branch at a time; its functions take any tape.
template <class Layer, TapePrecision precision>
struct PackedBranches : Layer {
  template <class Gradients>
  using TapeOf = typename Layer::template QuantizedTapeOf<Gradients, precision>;
  template <class Gradients>
  using ScratchOf = typename Layer::template PackedScratchOf<Gradients>;
  using Tape = TapeOf<typename Layer::Parameters>;
  using Scratch = ScratchOf<typename Layer::Parameters>;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr Abilities kAbilities = detail::with(Layer::kAbilities, &Abilities::lanes, Lanes::kNone);
};

template <class Layer, TapePrecision precision>
struct PackedLayer : std::conditional_t<kRunsByBranches<Layer>, PackedBranches<Layer, precision>,
                                        PackedWhole<Layer, precision>> {
  static_assert(Holds<std::is_same_v<typename Layer::Scalar, float>>,
                "attune::QuantizedTape: an 8- or 16-bit tape needs a model in float");
  template <int tokens, CacheShape cache>
  using Stream = detail::StreamOf<Layer, tokens, cache>;
  using SteppedAs = PackedLayer;
};
template <class Layer, TapePrecision precision>
inline constexpr bool kWorksInPlace<PackedLayer<Layer, precision>> = kWorksInPlace<Layer>;

/// The memory of a layer's input between forward and backward.
enum class InputFrom {
  kCaller = 0,  // the caller's, who keeps it
  kLayer = 1    // another layer's output, which the tape keeps
};

// Layers made of layers pack the tapes of their parts. A layer without a large tape stays as it is if its
// backward does not read its input, or if the input is a single row or the model's.
template <class Layer, TapePrecision precision, InputFrom input = InputFrom::kCaller>
struct WithQuantizedTape {
  static constexpr bool kPacks = [] {
    if constexpr (kTakesIds<Layer>) {
      return false;
    } else {
      using Set = typename Layer::Parameters;
      constexpr bool kTape =
          !std::is_same_v<typename QuantizedTapeOf<Layer, Set, precision>::type, TapeOf<Layer, Set>>;
      return kTape || kRunsByBranches<Layer> ||
             (input == InputFrom::kLayer && kReadsInput<Layer, Set> && Layer::Input::rows > 1);
    }
  }();
  using type = typename std::conditional_t<kPacks, std::type_identity<PackedLayer<Layer, precision>>,
                                           std::type_identity<Layer>>::type;
};
template <class Layer, TapePrecision packed, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<PackedLayer<Layer, packed>, precision, input> {
  using type = PackedLayer<Layer, packed>;
};
template <class First, class... Layers, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Sequential<First, Layers...>, precision, input> {
  using type = Sequential<typename WithQuantizedTape<First, precision, input>::type,
                          typename WithQuantizedTape<Layers, precision, InputFrom::kLayer>::type...>;
};
template <int count, class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Repeat<count, Layer>, precision, input> {
  using type = Repeat<count, typename WithQuantizedTape<Layer, precision, InputFrom::kLayer>::type>;
};
template <class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Residual<Layer>, precision, input> {
  using type = Residual<typename WithQuantizedTape<Layer, precision, input>::type>;
};
template <class Layer, const auto& kConstants, class What, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<PartlyTrained<Layer, kConstants, What>, precision, input> {
  using type = PartlyTrained<typename WithQuantizedTape<Layer, precision, input>::type, kConstants, What>;
};
template <class Embedding, class Body, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Tied<Embedding, Body>, precision, input> {
  using type = Tied<Embedding, typename WithQuantizedTape<Body, precision, InputFrom::kLayer>::type>;
};
template <class Encoder, class Decoder, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<EncoderDecoder<Encoder, Decoder>, precision, input> {
  using type = EncoderDecoder<typename WithQuantizedTape<Encoder, precision, input>::type,
                              typename WithQuantizedTape<Decoder, precision, input>::type>;
};

/// Whether packing may save memory.
template <class Layer, TapePrecision precision>
constexpr bool check_packing() {
  constexpr bool kMadeOfLayers = !requires { WithQuantizedTape<Layer, precision>::kPacks; };
  static_assert(
      Holds<(kMadeOfLayers || kRunsByBranches<Layer>)>,
      "attune::QuantizedTape: packing the tape of a single layer saves nothing; use QuantizedTape on the "
      "whole model, and .keep_weights = false in attention");
  return true;
}

}  // namespace detail

/// `Layer`, in float, with its tape in 8 or 16 bits; in a model, with the tapes of all layers in it. Layers
/// of your own without TapeIn keep their tape as it is.
template <detail::CheckedLayer Layer, TapePrecision precision = TapePrecision::kInt8>
  requires(detail::check_packing<Layer, precision>())
using QuantizedTape = typename detail::WithQuantizedTape<Layer, precision>::type;

}  // namespace ATTUNE_NAMESPACE
