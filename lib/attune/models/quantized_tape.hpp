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
#include <attune/models/each_group.hpp>
#include <attune/models/encoder_decoder.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/product.hpp>
#include <attune/models/reduced_attention.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/reversible_norm.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/shared_repeat.hpp>
#include <attune/models/sum.hpp>
#include <attune/models/tied.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Layer, TapePrecision precision>
struct PackedLayer : WithTapes<Layer, PackedTapes<precision>> {
  static_assert(Holds<std::is_same_v<typename Layer::Scalar, float>>,
                "attune::QuantizedTape: an 8- or 16-bit tape needs a model in float");
  template <int tokens, CacheShape cache>
  using Stream = detail::StreamOf<Layer, tokens, cache>;
  using SteppedAs = PackedLayer;
};

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
    if constexpr (TakesIds<Layer>) {
      return false;
    } else {
      using Set = typename Layer::Parameters;
      return !std::is_same_v<typename QuantizedTapeOf<Layer, Set, precision>::type, TapeOf<Layer, Set>> ||
             RunsByBranches<Layer> ||
             (input == InputFrom::kLayer && ReadsInput<Layer, Set> && Layer::Input::rows > 1);
    }
  }();
  using type = typename std::conditional_t<kPacks, std::type_identity<PackedLayer<Layer, precision>>,
                                           std::type_identity<Layer>>::type;
};
/// A part of a model, with its tape quantized.
template <class Layer, TapePrecision precision, InputFrom input = InputFrom::kCaller>
using QuantizedPart = typename WithQuantizedTape<Layer, precision, input>::type;
template <class Layer, TapePrecision packed, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<PackedLayer<Layer, packed>, precision, input> {
  using type = PackedLayer<Layer, packed>;
};
template <class First, class... Layers, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Sequential<First, Layers...>, precision, input> {
  using type = Sequential<QuantizedPart<First, precision, input>,
                          QuantizedPart<Layers, precision, InputFrom::kLayer>...>;
};
template <int count, class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Repeat<count, Layer>, precision, input> {
  using type = Repeat<count, QuantizedPart<Layer, precision, InputFrom::kLayer>>;
};
template <int count, class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<SharedRepeat<count, Layer>, precision, input> {
  using type = SharedRepeat<count, QuantizedPart<Layer, precision, InputFrom::kLayer>>;
};
template <class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Residual<Layer>, precision, input> {
  using type = Residual<QuantizedPart<Layer, precision, input>>;
};
template <int groups, class Layer, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<EachGroup<groups, Layer>, precision, input> {
  using type = EachGroup<groups, QuantizedPart<Layer, precision, input>>;
};
template <class... Layers, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Sum<Layers...>, precision, input> {
  using type = Sum<QuantizedPart<Layers, precision, input>...>;
};
template <class Layer, class Gate, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Product<Layer, Gate>, precision, input> {
  using type = Product<QuantizedPart<Layer, precision, input>, QuantizedPart<Gate, precision, input>>;
};
template <class Reduction, class Attention, class Queries, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<ReducedAttention<Reduction, Attention, Queries>, precision, input> {
  using type =
      ReducedAttention<QuantizedPart<Reduction, precision>, Attention, QuantizedPart<Queries, precision>>;
};
template <class Model, ReversibleNormOptions options, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<ReversibleNorm<Model, options>, precision, input> {
  using type = ReversibleNorm<QuantizedPart<Model, precision>, options>;
};
template <class Model, MaskFromIdsOptions options, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<MaskFromIds<Model, options>, precision, input> {
  using type = MaskFromIds<QuantizedPart<Model, precision, input>, options>;
};
template <class Layer, const auto& kConstants, class What, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<PartlyTrained<Layer, kConstants, What>, precision, input> {
  using type = PartlyTrained<QuantizedPart<Layer, precision, input>, kConstants, What>;
};
template <class Embedding, class Body, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<Tied<Embedding, Body>, precision, input> {
  using type = Tied<Embedding, QuantizedPart<Body, precision, InputFrom::kLayer>>;
};
template <class Encoder, class Decoder, TapePrecision precision, InputFrom input>
struct WithQuantizedTape<EncoderDecoder<Encoder, Decoder>, precision, input> {
  using type =
      EncoderDecoder<QuantizedPart<Encoder, precision, input>, QuantizedPart<Decoder, precision, input>>;
};

/// Whether packing may save memory.
template <class Layer, TapePrecision precision>
constexpr bool check_packing() {
  static_assert(
      Holds<(RunsByBranches<Layer> || !requires { WithQuantizedTape<Layer, precision>::kPacks; })>,
      "attune::QuantizedTape: packing the tape of a single layer saves nothing; use QuantizedTape on the "
      "whole model, and .keep_weights = false in attention");
  return true;
}

}  // namespace detail

/// `Layer`, in float, with its tape in 8 or 16 bits; in a model, with the tapes of all layers in it. Layers
/// of your own without TapeIn keep their tape as it is.
template <detail::CheckedLayer Layer, TapePrecision precision = TapePrecision::kInt8>
  requires(detail::check_packing<Layer, precision>())
using QuantizedTape = detail::QuantizedPart<Layer, precision>;

}  // namespace ATTUNE_NAMESPACE
