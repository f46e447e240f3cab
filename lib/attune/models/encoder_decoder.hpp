// An encoder and a decoder that attends to its output, as one model (Vaswani et al., "Attention Is All You
// Need", 2017; PyTorch's nn.Transformer).
//
//   m = Encoder(source),    y = Decoder(target, m)
//
//   dtarget, dm = Decoder's backward of dy,    dsource = Encoder's backward of dm
//
// m is the memory of every DecoderLayer in Decoder, and dm the sum of their gradients.
//
//   using Model = EncoderDecoder<
//       Sequential<Embedding<kSource>, Repeat<2, EncoderLayer<kEncoder>>, LayerNorm<kSourceNorm>>,
//       Sequential<Embedding<kTarget>, Repeat<2, DecoderLayer<kDecoder>>, LayerNorm<kTargetNorm>,
//       Linear<kHead>>>;
//   trainer.step(x, next_tokens, options, NoClipping{}, EncoderDecoderMask{source_padding});
//
// The model is a layer with one input: the source's tokens, then the target's. So it trains,
// streams, adapts and composes as any other layer.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include <attune/models/decoder_layer.hpp>

namespace ATTUNE_NAMESPACE {

/// The masks of an EncoderDecoder: of the encoder's attention, of the decoder's attention to its own tokens,
/// and of its attention to the memory. Without a mask, source and memory hide nothing, and the target is
/// causal.
///
///   EncoderDecoderMask{padding}                                      of the source, and of the memory
///   EncoderDecoderMask{padding, CausalMask{} && target_padding}
///   EncoderDecoderMask{NoMask{}, NoMask{}, memory_padding}
template <AttentionMask SourceMask = NoMask, AttentionMask TargetMask = CausalMask,
          AttentionMask MemoryMask = SourceMask>
struct EncoderDecoderMask {
  [[no_unique_address]] SourceMask source = {};      // of the encoder
  [[no_unique_address]] TargetMask target = {};      // of the decoder's own tokens
  [[no_unique_address]] MemoryMask memory = source;  // of the encoder's output

  /// The mask goes to an EncoderDecoder, and not to other layers with attention.
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.num_heads < 0)>,
                  "attune::EncoderDecoderMask: attention outside of an EncoderDecoder takes one mask; move "
                  "those layers into its Encoder or Decoder");
  }
  /// The padding of the target, for layers behind the model.
  template <int tokens>
  [[nodiscard]] constexpr bool keeps_key(int token) const {
    return detail::keeps_key<tokens>(target, token);
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar*) const {}
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};
template <class SourceMask>
EncoderDecoderMask(SourceMask) -> EncoderDecoderMask<SourceMask>;
template <class SourceMask, class TargetMask>
EncoderDecoderMask(SourceMask, TargetMask) -> EncoderDecoderMask<SourceMask, TargetMask>;
template <class SourceMask, class TargetMask, class MemoryMask>
EncoderDecoderMask(SourceMask, TargetMask, MemoryMask)
    -> EncoderDecoderMask<SourceMask, TargetMask, MemoryMask>;

namespace detail {

// Two inputs as one: rows or ids of the first, then of the second.
template <class Scalar, int first, int second, int cols>
Tensor<Scalar, first + second, cols> joined(Tensor<Scalar, first, cols>&, Tensor<Scalar, second, cols>&);
template <std::size_t first, std::size_t second>
std::array<int, first + second> joined(std::array<int, first>&, std::array<int, second>&);
// After an error, the first one.
template <class First>
First joined(First&, ...);
template <class First, class Second>
using Joined = decltype(joined(std::declval<First&>(), std::declval<Second&>()));

template <class Encoder, class Decoder>
constexpr bool check_encoder_decoder() {
  using Input = Joined<typename Encoder::Input, typename Decoder::Input>;
  static_assert(Holds<!std::is_same_v<Input, typename Encoder::Input>>,
                "attune::EncoderDecoder: source and target must both be token ids, or matrices with the same "
                "number of columns");
  static_assert(Holds<attends_to_memory<Decoder>()>,
                "attune::EncoderDecoder: no layer of the decoder attends to the encoder's output; put "
                "DecoderLayers into it");
  static_assert(
      Holds<!attends_to_memory<Decoder, typename Encoder::Output>()>,
      "attune::EncoderDecoder: the encoder's output is not the memory of a decoder layer; memory_len "
      "and d_model are its rows and columns");
  static_assert(Holds<(IsFrozen<Encoder> || !infers_memory<Decoder>())>,
                "attune::EncoderDecoder: a Frozen first decoder layer keeps no tape for the memory's "
                "gradient; freeze the encoder, too, or the whole decoder as one");
  return true;
}

}  // namespace detail

/// An encoder and a decoder, each any layer or model; Decoder has DecoderLayers, whose memory is the
/// encoder's output. x is the source, then the target: [source_len + target_len, …], or as many ids. A Frozen
/// encoder runs inference only.
template <detail::CheckedLayer EncoderModel, detail::CheckedLayer DecoderModel>
struct EncoderDecoder : detail::Steps<EncoderDecoder<EncoderModel, DecoderModel>>,
                        detail::Passes<EncoderDecoder<EncoderModel, DecoderModel>> {
  using Encoder = EncoderModel;
  using Decoder = DecoderModel;
  using Scalar = typename Decoder::Scalar;
  using Input = detail::Joined<typename Encoder::Input, typename Decoder::Input>;
  using Output = typename Decoder::Output;
  using Memory = typename Encoder::Output;
  template <class Other>
  using WithScalar = EncoderDecoder<typename detail::WithScalarOf<Encoder, Other>::type,
                                    typename detail::WithScalarOf<Decoder, Other>::type>;
  using Parts = LayerList<Encoder, Decoder>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("EncoderDecoder", kFingerprintOf<Encoder>, kFingerprintOf<Decoder>);
  static constexpr bool kAttendsToMemory = false;  // to one of another model
  static constexpr Abilities kAbilities{.mask = MaskUse::kScores,
                                        .takes_context = true,
                                        .additions = detail::kAbilitiesOfAll<Encoder, Decoder>.additions};
  static_assert(detail::check_encoder_decoder<Encoder, Decoder>());

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] detail::SetOfMember<Encoder, 0, Matrix, Vector> encoder;
    [[no_unique_address]] detail::SetOfMember<Decoder, 1, Matrix, Vector> decoder;
    ATTUNE_FIELDS(Set(encoder), Set(decoder))
  };
  using Parameters = ParametersOf<Tensor>;

 private:
  static constexpr bool kInfersEncoder = detail::IsFrozen<Encoder>;
  using DMemory = detail::MemberIf<!kInfersEncoder, Memory, 11>;

 public:
  /// The tapes of both, and the encoder's output.
  template <class Gradients>
  struct TapeOf {
    using OfEncoder =
        detail::MemberIf<!kInfersEncoder, detail::TapeOf<Encoder, decltype(Gradients::encoder)>, 10>;
    using OfDecoder = detail::TapeOf<Decoder, decltype(Gradients::decoder)>;
    [[no_unique_address]] OfEncoder encoder;
    [[no_unique_address]] OfDecoder decoder;
    Memory memory;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(detail::DropsIn<OfEncoder> ||
                                                                     detail::DropsIn<OfDecoder>) {
      detail::for_each_dropout(visitor, encoder, decoder);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    using OfEncoder = std::conditional_t<kInfersEncoder, typename Encoder::InferenceScratch,
                                         detail::ScratchOf<Encoder, decltype(Gradients::encoder)>>;
    struct OfDecoder {
      [[no_unique_address]] DMemory d_memory;  // of one decoder layer
      [[no_unique_address]] detail::ScratchOf<Decoder, decltype(Gradients::decoder)> decoder;
    };
    [[no_unique_address]] DMemory d_memory;
    detail::OneOf<OfEncoder, OfDecoder> parts;
  };
  using Scratch = ScratchOf<Parameters>;
  struct InferenceScratch {
    Memory memory;
    struct OfDecoder {
      [[no_unique_address]] typename Decoder::InferenceScratch decoder;
    };
    detail::OneOf<typename Encoder::InferenceScratch, OfDecoder> parts;
  };

  /// Token by token (execution/stream.hpp), if the decoder supports it: remember() encodes a source, and each
  /// step decodes tokens of the target. A step takes the memory's mask after its scratch. Without remember(),
  /// it returns kNothingRemembered.
  template <int tokens, CacheShape cache>
  struct Stream {
    using OfDecoder = detail::StreamOf<Decoder, tokens, cache>;  // the decoder's stream
    struct Memory {
      static constexpr std::uint32_t kFingerprint = kFingerprintOf<detail::StreamMemoryOf<Decoder, cache>>;
      [[no_unique_address]] detail::StreamMemoryOf<Decoder, cache> decoder;
      std::uint32_t remembered;  // 0: not yet
    };
    static constexpr std::uint64_t kMaxTokens = detail::kMaxTokens<Decoder, cache>;
    using Scratch = typename OfDecoder::Scratch;

    static Status ready(const auto& memory) {
      return memory.remembered != 0 ? Status::kOk : Status::kNothingRemembered;
    }
    static detail::ForwardResult<Decoder> step(std::uint64_t position, const auto& parameters,
                                               ConstView<detail::StepInput<Decoder, tokens>> x,
                                               View<detail::StepOutput<Decoder, tokens>> y, auto& memory,
                                               Scratch& scratch, const auto&... more) {
      return OfDecoder::step(position, parameters.decoder, x, y, memory.decoder, scratch, more...);
    }
  };
  /// Scratch of remember().
  struct EncoderScratch {
    Memory memory;  // the encoder's output
    [[no_unique_address]] typename Encoder::InferenceScratch encoder;
  };
  /// Encodes a source, with its mask, and writes keys and values of its memory to a cache, for all steps
  /// until the next source. For a cache in 8 bits products of activations are Int8CacheProducts. Returns
  /// kInvalidToken for an invalid id; the cache is then unchanged.
  template <class Set = Parameters, class Model, CacheShape shape, AttentionMask Mask = NoMask>
  static Status remember(const Set& parameters, ConstView<typename Encoder::Input> source,
                         KeyValueCache<Model, shape>& cache, EncoderScratch& scratch, const Mask& mask = {}) {
    using Products =
        std::conditional_t<shape.precision == CachePrecision::kInt8, Int8CacheProducts, FloatProducts>;
    const Status status =
        detail::forward_pass<Encoder>(detail::context_with<Encoder, Products>(mask), parameters.encoder,
                                      source, View<Memory>(scratch.memory), scratch.encoder);
    if (status != Status::kOk) return status;
    Stream<1, shape>::OfDecoder::remember(parameters.decoder, ConstView<Memory>(scratch.memory),
                                          cache.memory.decoder);
    cache.memory.remembered = 1;
    return status;
  }

  /// void, or a Status if source and target are token ids: kInvalidToken, with y unchanged, if one is outside
  /// its vocabulary.
  using ForwardResult = detail::ForwardResult<EncoderDecoder>;

  /// The source in x, or in dx.
  [[nodiscard]] static constexpr auto source(const auto& x) {
    return detail::part_of<typename Encoder::Input>(x, 0);
  }
  /// The target in x, or in dx.
  [[nodiscard]] static constexpr auto target(const auto& x) {
    return detail::part_of<typename Decoder::Input>(x, detail::kTokens<Encoder>);
  }

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<EncoderDecoder>::forward, detail::Passes<EncoderDecoder>::backward;

 private:
  friend detail::Passes<EncoderDecoder>;
  ATTUNE_INLINE static ForwardResult run(const auto& context, const auto& parameters, const auto& x,
                                         const auto& y, auto& scratch, auto&... tape) {
    auto& memory = detail::on_tape(scratch, tape...).memory;
    const auto encode = [&](const auto& of_source, auto&... of_encoder) ATTUNE_INLINE_LAMBDA {
      return detail::forward_status<Encoder>(of_source, parameters.encoder, source(x), View<Memory>(memory),
                                             of_encoder..., scratch.parts.first);
    };
    return ForwardResult(with_contexts(
        context, memory, NoGradient{}, NoGradient{},
        [&](const auto& of_source, const auto& of_target) ATTUNE_INLINE_LAMBDA {
          Status status = context.inside([&]() ATTUNE_INLINE_LAMBDA {
            if constexpr (kInfersEncoder) {
              return encode(of_source);
            } else {
              return encode(of_source, tape.encoder...);
            }
          });
          if (status != Status::kOk) return status;
          detail::clear_behind(of_source, View<Memory>(memory));
          status = context.inside([&]() ATTUNE_INLINE_LAMBDA {
            return detail::forward_status<Decoder>(of_target, parameters.decoder, target(x), y,
                                                   tape.decoder..., detail::one_of<1>(scratch.parts).decoder);
          });
          if (status == Status::kOk) detail::clear_behind(of_target, y);
          return status;
        }));
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    static_assert(detail::Holds<(!kWanted<decltype(dx)> || !kInfersEncoder)>,
                  "attune::EncoderDecoder: a Frozen encoder keeps no tape for dx; move layers before the "
                  "model into Encoder and Decoder");
    auto& of_decoder = detail::one_of<1>(scratch.parts);
    const auto decode = [&](const auto& d_memory, const auto& own) ATTUNE_INLINE_LAMBDA {
      with_contexts(context, tape.memory, d_memory, own,
                    [&](const auto&, const auto& of_target) ATTUNE_INLINE_LAMBDA {
                      context.inside([&]() ATTUNE_INLINE_LAMBDA {
                        detail::backward_in<Decoder>(of_target, parameters.decoder, target(x), tape.decoder,
                                                     dy, target(dx), gradients.decoder, of_decoder.decoder);
                      });
                      detail::clear_behind(of_target, target(dx));
                    });
    };
    if constexpr (kInfersEncoder) {
      decode(NoGradient{}, NoGradient{});
    } else {
      const View<Memory> d_memory(scratch.d_memory);
      context.stage([&]() ATTUNE_INLINE_LAMBDA { scratch.d_memory.set_zero(); });
      decode(d_memory, View<Memory>(of_decoder.d_memory));
      with_contexts(context, tape.memory, NoGradient{}, NoGradient{},
                    [&](const auto& of_source, const auto&) ATTUNE_INLINE_LAMBDA {
                      context.inside([&]() ATTUNE_INLINE_LAMBDA {
                        detail::backward_in<Encoder>(of_source, parameters.encoder, source(x), tape.encoder,
                                                     ConstView<Memory>(d_memory), source(dx),
                                                     gradients.encoder, scratch.parts.first);
                      });
                      detail::clear_behind(of_source, source(dx));
                    });
    }
  }

  // Calls body(context of the encoder, context of the decoder).
  template <class Call, class DMemory>
  ATTUNE_INLINE static decltype(auto) with_contexts(const Call& context, const Memory& memory,
                                                    const DMemory& d_memory, const DMemory& own,
                                                    const auto& body) {
    const auto& masks = masks_of(context.mask());
    using Target = std::remove_cvref_t<decltype(masks.target)>;
    using OfMemory = std::remove_cvref_t<decltype(masks.memory)>;
    const auto keys = detail::valid_tokens<Memory::rows, detail::TakesLength<Decoder>>(masks.memory);
    const detail::MaskWithMemory<Target, OfMemory, std::remove_const_t<decltype(keys)>, Memory, DMemory>
        target{masks.target, masks.memory, keys, memory, d_memory, own};
    using Products = typename Call::Products;
    return body(context_for<Encoder>(masks.source, context.slices()).template with_products<Products>(),
                context_for<Decoder>(target, context.slices()).template with_products<Products>());
  }
  template <class Mask>
  static constexpr decltype(auto) masks_of([[maybe_unused]] const Mask& mask) {
    if constexpr (requires { mask.source, mask.target; }) {
      return (mask);
    } else {
      static_assert(detail::Holds<std::is_same_v<Mask, NoMask>>,
                    "attune::EncoderDecoder: one mask is ambiguous; pass EncoderDecoderMask{source, target}");
      return EncoderDecoderMask<>{};
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
