// A model of token ids that hides its padding itself: the tokens whose id is `padding`, wherever they are.
//
//   using Model = Sequential<
//       MaskFromIds<Sequential<Embedding<kTokens>, Repeat<2, EncoderLayer<kBlock>>>>,   // id 0 is padding
//       Pooling<PoolingShape{.seq_len = 16, .d_model = 32, .kind = PoolingKind::kFirst}>, Linear<kHead>>;
//
// It computes what a PyTorch model does whose forward makes the mask of its ids: attention hides the keys
// that are padding, and all tokens are computed. Layers inside, such as Pooling, leave padding out; layers
// behind it see all tokens. The mask is a pointer to the ids, so it takes no RAM.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/attention/mask.hpp>
#include <attune/attention/option_masks.hpp>
#include <attune/models/composition.hpp>
#include <attune/models/encoder_decoder.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of `MaskFromIds`.
struct MaskFromIdsOptions {
  int padding = 0;  // the id of padding, below the vocabulary; in an EncoderDecoder, of the source's, or
                    // −1: it has none
  int table = 0;    // with several ids for each token (EmbeddingSum): the index of these ids
  int target_padding = -1;  // in an EncoderDecoder, the id of the target's padding; −1: it has none
};

/// Hides the keys whose id is kPadding. Holds a pointer: the ids must outlive the mask.
template <int kKvLen, int kPadding>
struct IdPaddingMask {
  const int* ids = nullptr;  // of kKvLen tokens

  template <int kv_len>
  [[nodiscard]] constexpr bool keeps_key(int key) const {
    static_assert(detail::Holds<(kv_len == kKvLen)>,
                  "attune::MaskFromIds: a layer has another number of tokens than the ids");
    return ids[key] != kPadding;
  }
  template <int kv_len>
  [[nodiscard]] constexpr int kv_end(int, int) const {
    int end = kv_len;
    while (end > 0 && ids[end - 1] == kPadding) --end;
    return end;
  }
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.kv_len == kKvLen)>,
                  "attune::MaskFromIds: attention has another number of keys than there are ids");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar* row) const {
    for (int key = 0; key < kv_len; ++key) {
      if (ids[key] == kPadding) row[key] = detail::kHidden<Scalar>;
    }
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

namespace detail {

template <class Model>
concept IsEncoderDecoder = requires {
  typename Model::Encoder;
  typename Model::Decoder;
};

/// Whether no query of the attention in a layer sees padding alone, among the first `tokens`. `given` is the
/// mask of the call. Queries that see no key without padding, either, do not count.
template <class Layer, int kKeys, class Given, class Padding>
bool queries_have_keys(const Given& given, const Padding& padding, int tokens) {
  if constexpr (requires { Layer::kShape.window.left; }) {
    if constexpr (Layer::kShape.num_keys() > Layer::kShape.kv_len) return true;  // appended keys
    const auto& visible = both_masks(window_of<Layer::kShape>(), given);
    constexpr bool kSeesAll = !kMasks<std::remove_cvref_t<decltype(visible)>>;  // then queries are alike
    for (int head = 0; head < (kMasks<Given> ? Layer::kShape.num_heads : 1); ++head) {
      for (int query = 0; query < (kSeesAll ? 1 : tokens); ++query) {
        float scores[std::size_t{kKeys}] = {};
        visible.template hide<kKeys>(head, query, scores);
        bool sees = false, found = false;
        for (int key = 0; key < kKeys; ++key) {
          if (scores[key] < 0) continue;  // hidden
          sees = true;
          found = found || padding.template keeps_key<kKeys>(key);
        }
        if (sees && !found) return false;
      }
    }
    return true;
  } else {
    return !any_part<Layer>(
        [&]<class Part>() { return !queries_have_keys<Part, kKeys>(given, padding, tokens); });
  }
}

/// The padding among the ids of a model.
template <class Model, MaskFromIdsOptions options>
struct IdPadding {
  static constexpr int kTokens = detail::kTokens<Model>;

  static constexpr bool is_in_vocabulary() { return options.padding < Vocabulary<Model>::of(options.table); }
  /// The model's mask.
  static constexpr auto mask(const int* ids) {
    return IdPaddingMask<kTokens, options.padding>{ids + options.table * kTokens};
  }
  /// Whether no query has padding alone.
  static bool has_keys(const int* ids, const auto& context) {
    return queries_have_keys<Model, kTokens>(context.mask(), mask(ids), context.template count<kTokens>());
  }
};
template <IsEncoderDecoder Model, MaskFromIdsOptions options>
struct IdPadding<Model, options> {
  using Encoder = typename Model::Encoder;
  using Decoder = typename Model::Decoder;

  static constexpr bool is_in_vocabulary() {
    return options.padding < Vocabulary<Encoder>::of(0) &&
           options.target_padding < Vocabulary<Decoder>::of(0);
  }
  static constexpr auto mask(const int* ids) {
    const auto source = one<kTokens<Encoder>, options.padding>(ids);
    const auto target = one<kTokens<Decoder>, options.target_padding>(ids + kTokens<Encoder>);
    return EncoderDecoderMask{source, CausalMask{} && target};
  }
  static bool has_keys(const int* ids, const auto&) {
    constexpr int kSource = kTokens<Encoder>;
    const auto padding = mask(ids);
    int key = 0;
    while (key < kSource && !keeps_key<kSource>(padding.source, key)) ++key;
    return key < kSource && keeps_key<kTokens<Decoder>>(padding.target, 0);
  }

 private:
  template <int tokens, int padding>
  static constexpr auto one([[maybe_unused]] const int* ids) {
    if constexpr (padding < 0) {
      return NoMask{};
    } else {
      return IdPaddingMask<tokens, padding>{ids};
    }
  }
};

template <class Model, MaskFromIdsOptions options>
concept HasIdTable = TakesIds<Model> && options.table >= 0 && (options.table < kIdsOfToken<Model>);
template <class Model, MaskFromIdsOptions options>
concept PadsFromVocabulary = !HasIdTable<Model, options> || IdPadding<Model, options>::is_in_vocabulary();

template <class Model, MaskFromIdsOptions options>
constexpr bool check_mask_from_ids() {
  static_assert(Holds<TakesIds<Model>>,
                "attune::MaskFromIds: the model takes no token ids; give padding with each call, as in a "
                "SequenceLength");
  static_assert(Holds<TakesMask<Model>>,
                "attune::MaskFromIds: no layer of the model uses a mask; put attention or pooling into it");
  static_assert(
      Holds<(options.padding >= (IsEncoderDecoder<Model> ? -1 : 0) && options.target_padding >= -1 &&
             (options.padding >= 0 || options.target_padding >= 0))>,
      "attune::MaskFromIds: padding must be an id, at least 0");
  static_assert(Holds<(IsEncoderDecoder<Model> || options.target_padding < 0)>,
                "attune::MaskFromIds: only an EncoderDecoder has a target; leave target_padding out");
  static_assert(Holds<(!TakesIds<Model> || HasIdTable<Model, options>)>,
                "attune::MaskFromIds: table must be less than the number of ids for each token");
  static_assert(Holds<PadsFromVocabulary<Model, options>>,
                "attune::MaskFromIds: padding must be below the vocabulary: it is an id, with a row of the "
                "embedding");
  static_assert(Holds<!attends_to_memory<Model>()>,
                "attune::MaskFromIds: a decoder alone does not know the ids of its memory; put the whole "
                "EncoderDecoder into it");
  return true;
}
template <class Model, MaskFromIdsOptions options>
concept MasksFromIds = CheckedLayer<Model> && check_mask_from_ids<Model, options>();

}  // namespace detail

/// `Model`, a model of token ids, with its padding hidden. In an EncoderDecoder the source's padding is
/// hidden from the encoder and from the decoder's attention to it. The target is causal, and its own padding
/// is hidden. A mask of the call hides further keys. Returns Status::kPaddingToken, and writes nothing, if a
/// token could attend to nothing but padding: no id is a token, or, in causal attention, the first one is
/// none. In a stream, an id of padding returns kPaddingToken.
template <class ModelType, MaskFromIdsOptions options = MaskFromIdsOptions{}>
  requires detail::MasksFromIds<ModelType, options>
struct MaskFromIds : detail::Steps<MaskFromIds<ModelType, options>>,
                     detail::Passes<MaskFromIds<ModelType, options>> {
  using Model = ModelType;
  using Scalar = typename Model::Scalar;
  using Input = typename Model::Input;
  using Output = typename Model::Output;
  template <class Other>
  using WithScalar = MaskFromIds<typename detail::WithScalarOf<Model, Other>::type, options>;
  using Parts = LayerList<Model>;
  static constexpr std::uint32_t kFingerprint = fingerprint("MaskFromIds", options.padding, options.table,
                                                            options.target_padding, kFingerprintOf<Model>);
  static constexpr bool kFrozen = detail::IsFrozen<Model>;  // whether no parameter is trained

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = detail::SetOf<Model, Matrix, Vector>;
  using Parameters = typename Model::Parameters;
  static constexpr Abilities kAbilities =  // one sequence at a time has a mask
      detail::with(detail::kAbilitiesOfAll<Model>, &Abilities::lanes, Lanes::kNone);

  template <class Gradients>
  using TapeOf = detail::TapeOf<Model, Gradients>;
  template <class Gradients>
  using ScratchOf = detail::ScratchOf<Model, Gradients>;
  using Tape = typename Model::Tape;
  using Scratch = typename Model::Scratch;
  using InferenceScratch = typename Model::InferenceScratch;

  /// Token by token (execution/stream.hpp), if the model supports it. A stream has no padding.
  template <int tokens, CacheShape cache>
  struct Stream : detail::StreamOf<Model, tokens, cache> {
    using Base = detail::StreamOf<Model, tokens, cache>;
    static Status step(std::uint64_t position, const auto& parameters,
                       ConstView<detail::StepInput<Model, tokens>> ids,
                       View<detail::StepOutput<Model, tokens>> y, auto& memory,
                       typename Base::Scratch& scratch, const auto&... more) {
      for (int i = 0; i < tokens; ++i) {
        if (ids[options.table * tokens + i] == options.padding) return Status::kPaddingToken;
      }
      return Base::step(position, parameters, ids, y, memory, scratch, more...);
    }
  };

  /// Writes nothing on an error.
  using detail::Passes<MaskFromIds>::forward, detail::Passes<MaskFromIds>::backward;

 private:
  using Padding = detail::IdPadding<Model, options>;
  friend detail::Passes<MaskFromIds>;
  ATTUNE_INLINE static Status run(const auto& context, const auto& parameters, const auto& ids, const auto& y,
                                  auto& scratch, auto&... tape) {
    return masked(ids, context, [&](const auto& own) ATTUNE_INLINE_LAMBDA {
      const Status status = context.answer([&]() ATTUNE_INLINE_LAMBDA {
        return Padding::has_keys(ids.data(), context) ? Status::kOk : Status::kPaddingToken;
      });
      if (status != Status::kOk) return status;
      return detail::forward_in<Model>(own, parameters, ids, y, tape..., scratch);
    });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& ids,
                                         auto& tape, const auto& dy, NoGradient, auto& gradients,
                                         auto& scratch) {
    masked(ids, context, [&](const auto& own) ATTUNE_INLINE_LAMBDA {
      detail::backward_in<Model>(own, parameters, ids, tape, dy, NoGradient{}, gradients, scratch);
    });
  }
  template <class Call, class Body>
  ATTUNE_INLINE static decltype(auto) masked(ConstView<Input> ids, const Call& context, const Body& body) {
    static_assert(
        detail::Holds<(!detail::IsEncoderDecoder<Model> || std::is_same_v<typename Call::Mask, NoMask>)>,
        "attune::MaskFromIds: an EncoderDecoder whose ids give the masks takes no other mask");
    const auto own = Padding::mask(ids.data());
    const auto& both = detail::both_masks(context.mask(), own);
    return body(context.with_mask(both));
  }
};

}  // namespace ATTUNE_NAMESPACE
