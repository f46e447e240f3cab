// The zoo: small models that between them have every kind of layer, storage and loss that the library
// combines. Each is a type that names the model, its loss and optimizer, and how to draw its data. tests/zoo/
// trains them in every way that promises the same bits, on the host and on boards.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <attune/attune.hpp>

#include "models/own_layer/depthwise_convolution.hpp"
#include "models/own_layer/prelu.hpp"

namespace zoo {

using namespace attune;  // NOLINT: for the models

/// Masks that a model of the zoo is trained with.
enum class Masking {
  kNone = 0,
  kCausal = 1,
  kPadding = 2,  // a KeyPaddingMask for each sequence
  kLength = 3,   // a SequenceLength for each sequence, with the bits of that padding
};

/// The products and the tape of a training, or the products of an inference.
enum class Precision {
  kFloats = 0,
  kIntegers = 1,      // Int8Training
  kRoundedTape = 2,   // QuantizedTape in 8 bits
  kInference = 3,     // zoo/inference.hpp
  kInt8Inference = 4  // with keys and values in 8 bits
};
inline constexpr const char* kPrecisions[] = {"floats", "integers", "rounded_tape", "inference",
                                              "int8_inference"};

/// Sets of masks.
constexpr unsigned bit(Masking mask) { return 1u << static_cast<int>(mask); }
inline constexpr unsigned kNoMasks = bit(Masking::kNone);
inline constexpr unsigned kPadded = kNoMasks | bit(Masking::kPadding) | bit(Masking::kLength);
inline constexpr unsigned kEveryMask = kPadded | bit(Masking::kCausal);

/// A model of the zoo. A derived type names Model, and changes what it needs.
struct Defaults {
  using Loss = CrossEntropy<>;
  using Optimizer = AdamW;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.02f};
  static constexpr unsigned kMasks = kEveryMask;
  static constexpr int kTokens = 17;                          // of a sequence
  static constexpr int kVocabulary = 7;                       // bound of token ids
  static constexpr int kClasses = 5;                          // bound of targets
  static constexpr bool kTranslates = false;                  // two sequences in one
  static constexpr bool kIgnoresPadding = true;               // in its loss
  static constexpr bool kStreams = false;                     // token by token
  static constexpr bool kPacksTape = true;                    // QuantizedTape saves memory
  static constexpr bool kHasLanes = true;                     // Lockstep takes it
  static constexpr Precision kOnBoards = Precision::kFloats;  // in the image of all models (zoo/golden.cpp)
  static void fill_constants() {}
  static void fill_twin_constants() {}
  static constexpr auto causal() { return CausalMask{}; }
  static auto padded(const auto& mask) { return mask; }
};

// Of sums of 16 terms on, Int8Training computes in integers.
inline constexpr int kTokens = 17, kWidth = 16, kInner = 18;
inline constexpr AttentionShape kSelf{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2};
using Project = Linear<LinearShape{.rows = kTokens, .d_in = 16, .d_out = kWidth}>;
using Norm = LayerNorm<NormShape{.rows = kTokens, .d_model = kWidth}>;
template <PoolingKind kind>
using Pool = Pooling<PoolingShape{.seq_len = kTokens, .d_model = kWidth, .kind = kind}>;
using Classify = Linear<LinearShape{.rows = 1, .d_in = kWidth, .d_out = 5}>;
template <NormPlacement norm, Activation activation = Activation::kRelu>
using Encoder = EncoderLayer<EncoderLayerShape{
    .attention = kSelf, .d_ff = kInner, .activation = activation, .norm = norm}>;
using Before = Encoder<NormPlacement::kBefore>;
using After = Encoder<NormPlacement::kAfter, Activation::kGelu>;
/// Before, without weights of attention on the tape.
using BeforeRecomputing = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2, .keep_weights = false},
    .d_ff = kInner,
    .norm = NormPlacement::kBefore}>;

/// The README's first program.
struct Attention : Defaults {
  static constexpr const char* kName = "attention";
  using Model = MultiHeadAttention<AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}>;
  using Loss = MeanSquaredError;
  static constexpr int kTokens = 16;
  static constexpr bool kPacksTape = false;
  static constexpr bool kIgnoresPadding = false;
  static constexpr unsigned kMasks = kNoMasks | bit(Masking::kCausal) | bit(Masking::kPadding);
  static constexpr bool kStreams = true;
};

/// An encoder with its norms after attention and network.
struct EncoderAfter : Defaults {
  static constexpr const char* kName = "encoder_after";
  using Model = Sequential<Project, After, Pool<PoolingKind::kMean>, Classify>;
  using Twin = Sequential<Project, Checkpointed<After>, Pool<PoolingKind::kMean>, Classify>;
  static constexpr Precision kOnBoards = Precision::kIntegers;
};

/// Two encoders with norms before, and positions.
struct Repeated : Defaults {
  static constexpr const char* kName = "repeated";
  using Model = Sequential<Project, LearnedPositions<PositionShape{kTokens, kWidth}>, Repeat<2, Before>, Norm,
                           Pool<PoolingKind::kFirst>, Classify>;
  using Twin = Sequential<Project, LearnedPositions<PositionShape{kTokens, kWidth}>, Before, Before, Norm,
                          Pool<PoolingKind::kFirst>, Classify>;
  using Optimizer = Adam<AdamVariant{.moments = MomentPrecision::kInt8Stochastic}>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.02f};
  static constexpr Precision kOnBoards = Precision::kRoundedTape;
};

/// Dropout, recomputed tapes and recomputed attention weights.
struct Recomputed : Defaults {
  static constexpr const char* kName = "recomputed";
  template <bool keep_weights>
  using Block = EncoderLayer<EncoderLayerShape{.attention = {.seq_len = zoo::kTokens,
                                                             .d_model = kWidth,
                                                             .num_heads = 2,
                                                             .dropout = 0.25,
                                                             .keep_weights = keep_weights},
                                               .d_ff = kInner,
                                               .norm = NormPlacement::kBefore}>;
  using Drop = Dropout<DropoutShape{.rows = zoo::kTokens, .d_model = kWidth, .probability = 0.25}>;
  using End = Sequential<Drop, Linear<LinearShape{zoo::kTokens, kWidth, 5}>>;
  using Model = Sequential<Project, Drop, Repeat<2, Checkpointed<Block<false>>>, Checkpointed<End>>;
  using Twin = Sequential<Project, Drop, Repeat<2, Block<true>>, End>;
  using Optimizer = Sgd<Momentum::kClassic>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.1f};
  static constexpr bool kStreams = true;
};

/// Blocks with one set of parameters.
struct Shared : Defaults {
  static constexpr const char* kName = "shared";
  template <class Block>
  using Around =
      Sequential<Project, SharedRepeat<3, Block>, Norm, Linear<LinearShape{zoo::kTokens, kWidth, 5}>>;
  using Model = Around<Recomputed::Block<true>>;
  using Twin = Around<Checkpointed<Recomputed::Block<false>>>;
  static constexpr bool kStreams = true;
};

/// Llama's blocks, whose embedding is also the head.
struct Llama : Defaults {
  static constexpr const char* kName = "llama";
  using Block = EncoderLayerOf<
      MultiHeadAttention<AttentionShape{.seq_len = zoo::kTokens,
                                        .d_model = kWidth,
                                        .num_heads = 4,
                                        .num_kv_heads = 2,
                                        .bias = false,
                                        .rotary_dim = 4}>,
      SwiGlu<FeedForwardShape{.rows = zoo::kTokens, .d_model = kWidth, .d_ff = kInner, .bias = false}>,
      RmsNorm<NormShape{zoo::kTokens, kWidth}>, BranchOptions{.norm = NormPlacement::kBefore}>;
  using Model =
      Tied<Embedding<EmbeddingShape{.seq_len = zoo::kTokens, .vocabulary = kVocabulary, .d_model = kWidth}>,
           Sequential<Repeat<2, Block>, RmsNorm<NormShape{zoo::kTokens, kWidth}>>>;
  static constexpr int kClasses = kVocabulary;
  static constexpr bool kStreams = true;
};

/// An encoder and a decoder that attends to it.
struct Translator : Defaults {
  static constexpr const char* kName = "translator";
  using Words =
      Embedding<EmbeddingShape{.seq_len = zoo::kTokens, .vocabulary = kVocabulary, .d_model = kWidth}>;
  using Model =
      EncoderDecoder<Sequential<Words, Before>,
                     Sequential<Words,
                                DecoderLayer<DecoderLayerShape{
                                    .attention = kSelf, .d_ff = kInner, .memory_len = zoo::kTokens}>,
                                Linear<LinearShape{zoo::kTokens, kWidth, kVocabulary}>>>;
  using Optimizer = Adafactor<>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.05f};
  static constexpr unsigned kMasks = kPadded;
  static constexpr int kClasses = kVocabulary;
  static constexpr bool kTranslates = true;
  static constexpr Precision kOnBoards = Precision::kIntegers;
};

/// Token ids with positions and segments, in groups of parameters.
struct Words : Defaults {
  static constexpr const char* kName = "words";
  using Model =
      Sequential<Embedding<EmbeddingShape{
                     .seq_len = zoo::kTokens, .vocabulary = kVocabulary, .d_model = kWidth, .padding = 2}>,
                 SinusoidalPositions<PositionShape{zoo::kTokens, kWidth}>,
                 TokenType<TokenTypeShape{zoo::kTokens, kWidth}>, Norm, Residual<MultiHeadAttention<kSelf>>,
                 Pool<PoolingKind::kMax>, Classify>;
  using Optimizer = ParameterGroups<AdamW>;
  static constexpr Optimizer::Options kOptions{.weights = {.learning_rate = 0.02f},
                                               .biases = {.learning_rate = 0.05f}};
};

/// Convolutions in front of an encoder.
struct Convolution : Defaults {
  static constexpr const char* kName = "convolution";
  using Model = Sequential<
      Conv1d<Conv1dShape{.seq_len = 34, .d_in = 4, .d_out = kWidth, .kernel = 4, .stride = 2, .padding = 1}>,
      Silu<zoo::kTokens, kWidth>, Encoder<NormPlacement::kAfter>, Pool<PoolingKind::kMax>, Classify>;
  using Optimizer = Sgd<Momentum::kNesterov, float, MomentPrecision::kBfloat16>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.1f};
  static constexpr unsigned kMasks = kNoMasks;
  static constexpr Precision kOnBoards = Precision::kRoundedTape;
};

/// The constants of a part: floats, and what they become in 8 bits.
template <class Layer>
struct Constants {
  static inline typename Layer::Parameters floats;
  static inline typename Layer::template ParametersOf<Int8Weights, Tensor> integers;
  static inline typename Layer::template ParametersOf<PackedInt8Weights, Tensor> packed;

  static void fill(std::uint64_t seed) {
    Rng rng(seed);
    initialize(floats, XavierUniform{}, rng);
    (void)quantize(floats, integers);
    (void)quantize(floats, packed);
  }
};

/// LoRA beside a whole model of floats.
struct Adapters : Defaults {
  static constexpr const char* kName = "adapters";
  template <class Block>
  using Around = Sequential<Project, Repeat<2, Block>, Pool<PoolingKind::kMean>, Classify>;
  using Whole = Around<After>;
  using Recomputing = Around<Checkpointed<After>>;
  static constexpr LowRank kLowRank{
      .rank = 3, .roles = Role::kEverything, .alpha = 4.5, .biases_and_norms = true};
  using Model = Adapted<Whole, Constants<Whole>::floats, kLowRank>;
  using Twin = Adapted<Recomputing, Constants<Recomputing>::floats, kLowRank>;
  static void fill_constants() { Constants<Whole>::fill(3); }
  static void fill_twin_constants() { Constants<Recomputing>::fill(3); }
};

/// The same beside a convolution and a layer of one's own, of more factors than rows that are updated at a
/// time.
struct AdaptedLayers : Defaults {
  static constexpr const char* kName = "adapted_layers";
  using Whole =
      Sequential<Project,
                 Conv1d<Conv1dShape{
                     .seq_len = zoo::kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 3, .padding = 1}>,
                 ::PRelu<zoo::kTokens, kWidth>, Repeat<2, After>, Pool<PoolingKind::kMean>, Classify>;
  static constexpr LowRank kLowRank{
      .rank = 9, .roles = Role::kEverything, .alpha = 4.5, .biases_and_norms = true};
  using Model = Adapted<Whole, Constants<Whole>::floats, kLowRank>;
  static void fill_constants() { Constants<Whole>::fill(3); }
};

/// A frozen front and LoRA over a base in 8 bits, with parameters in 16 bits.
struct Int8Base : Defaults {
  static constexpr const char* kName = "int8_base";
  static constexpr LowRank kLowRank{.rank = 2, .roles = Role::kEverything, .alpha = 3};
  using Front = Sequential<Project, After>;
  template <class First, class Second>
  using Around =
      Sequential<Frozen<Front, Constants<Front>::integers>,
                 Adapted<First, Constants<First>::integers, kLowRank>,
                 BiasesAndNorms<Second, Constants<Second>::integers>, Pool<PoolingKind::kMean>, Classify>;
  using Model = Around<Before, Before>;
  using Twin = Around<Checkpointed<Before>, BeforeRecomputing>;
  using Optimizer = StochasticBfloat16<AdamW>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.02f};
  static void fill_constants() {
    Constants<Front>::fill(4);
    Constants<Before>::fill(5);
  }
  static void fill_twin_constants() {
    Constants<Checkpointed<Before>>::fill(5);
    Constants<BeforeRecomputing>::fill(5);
  }
};

/// LoRA next to products of integers.
struct PackedBase : Defaults {
  static constexpr const char* kName = "packed_base";
  static constexpr LowRank kLowRank{
      .rank = 2, .roles = Role::kEverything, .alpha = 3, .biases_and_norms = true};
  using Network = SwiGlu<FeedForwardShape{.rows = zoo::kTokens, .d_model = kWidth, .d_ff = kInner}>;
  using Model =
      Sequential<Project, Adapted<After, Constants<After>::packed, kLowRank>,
                 Frozen<Network, Constants<Network>::packed>, Norm, Pool<PoolingKind::kMean>, Classify>;
  using Optimizer = Sgd<Momentum::kClassic, float, MomentPrecision::kInt8>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.05f};
  static constexpr bool kHasLanes = false;
  static void fill_constants() {
    Constants<After>::fill(6);
    Constants<Network>::fill(7);
  }
  static constexpr Precision kOnBoards = Precision::kIntegers;
};

/// Layers that stream, in which tokens meet by attention with the options of a shape, and by a convolution.
struct TokenByToken : Defaults {
  static constexpr const char* kName = "token_by_token";
  using Options = MultiHeadAttention<AttentionShape{
      .seq_len = zoo::kTokens,
      .d_model = kWidth,
      .num_heads = 4,
      .num_kv_heads = 2,
      .scaling = Scaling::kInverseFourthRootDkEach,
      .rotary_dim = 2,
      .window = {.left = 9, .sinks = 1},
      .alibi = true,
      .relative_bias = {.kind = RelativePositions::kBuckets, .max_distance = 9, .buckets = 8},
      .softcap = 5,
      .query_key_norm = QueryKeyNorm::kLayerNorm,
      .score_scale = ScoreScale::kExponential}>;
  using Middle = Sequential<
      Conv1d<Conv1dShape{.seq_len = zoo::kTokens,
                         .d_in = kWidth,
                         .d_out = kWidth,
                         .kernel = 3,
                         .groups = 2,
                         .causal = true}>,
      Prelu<PreluShape{zoo::kTokens, kWidth, kWidth}>, TokenType<TokenTypeShape{zoo::kTokens, kWidth}>,
      RotaryPositions<RotaryShape{zoo::kTokens, 2, kWidth / 2}>,
      DeviationNorm<NormShape{zoo::kTokens, kWidth}>, Residual<Options>,
      Residual<Softmax<zoo::kTokens, kWidth>>, Linear<LinearShape{zoo::kTokens, kWidth, 2 * kWidth}>,
      Glu<GluShape{zoo::kTokens, kWidth}>, LayerScale<ScaleShape{zoo::kTokens, kWidth, 0.5}>,
      Prelu<PreluShape{zoo::kTokens, kWidth}>, FeatureBias<FeatureBiasShape{zoo::kTokens, kWidth}>>;
  template <class Layers>
  using Around =
      Sequential<Project, Layers, Linear<LinearShape{zoo::kTokens, kWidth, 5}>, LogSoftmax<zoo::kTokens, 5>>;
  using Model = Around<Middle>;
  using Twin = Around<Checkpointed<Middle>>;
  using Optimizer = Adam<AdamVariant{.moments = MomentPrecision::kBfloat16}>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.02f};
  static constexpr bool kStreams = true;
};

/// Layers in which all tokens meet.
struct Pooled : Defaults {
  static constexpr const char* kName = "pooled";
  using Words =
      Embedding<EmbeddingShape{.seq_len = zoo::kTokens, .vocabulary = kVocabulary, .d_model = kWidth}>;
  using Depthwise = Conv1d<Conv1dShape{
      .seq_len = zoo::kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 3, .padding = 1, .groups = kWidth}>;
  using Appending = MultiHeadAttention<AttentionShape{.seq_len = zoo::kTokens,
                                                      .d_model = kWidth,
                                                      .num_heads = 2,
                                                      .num_kv_heads = 1,
                                                      .add_bias_kv = true,
                                                      .add_zero_attn = true}>;
  using Middle =
      Sequential<Depthwise, ::DepthwiseConvolution<zoo::kTokens, kWidth, 3>,
                 GroupNorm<GroupNormShape{zoo::kTokens, kWidth, 4}>, GeluTanh<zoo::kTokens, kWidth>,
                 Residual<Appending>, SequencePooling<SequencePoolingShape{zoo::kTokens, kWidth}>>;
  template <class Layers>
  using Around = Sequential<EmbeddingSum<Words, Words>, LearnedPositions<PositionShape{zoo::kTokens, kWidth}>,
                            Layers, Classify>;
  using Model = Around<Middle>;
  using Twin = Around<Checkpointed<Middle>>;
  using Optimizer = Adam<AdamVariant{.moments = MomentPrecision::kInt8, .first_moment = FirstMoment::kNone}>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.02f};
};

/// An image: layers that change the number of tokens, attention along its columns, and norms without weights.
struct Image : Defaults {
  static constexpr const char* kName = "image";
  static constexpr int kPixels = 9, kPatches = kPixels + 1, kFeatures = 8;
  using Block = EncoderLayerOf<
      MultiHeadAttention<AttentionShape{.seq_len = kPatches, .d_model = kFeatures, .num_heads = 2}>,
      FeedForward<FeedForwardShape{.rows = kPatches, .d_model = kFeatures, .d_ff = 17}>,
      LayerNorm<NormShape{.rows = kPatches, .d_model = kFeatures, .weight = false}>>;
  using AlongColumn =
      Residual<MultiHeadAttention<AttentionShape{.seq_len = 3, .d_model = kFeatures, .num_heads = 2}>>;
  using Middle = Sequential<
      MaxPool2d<Pool2dShape{
          .height = 6, .width = 6, .d_model = kFeatures, .kernel_height = 2, .kernel_width = 2}>,
      AvgPool1d<Pool1dShape{
          .seq_len = kPixels, .d_model = kFeatures, .kernel = 3, .stride = 1, .padding = 1}>,
      RepeatLastToken<TokenShape{.seq_len = kPixels, .d_model = kFeatures, .tokens = 2}>,
      AvgPool1d<Pool1dShape{.seq_len = kPixels + 2, .d_model = kFeatures, .kernel = 3, .stride = 1}>,
      TransposeGrid<TransposeGridShape{.rows = 3, .cols = 3, .d_model = kFeatures}>,
      EachGroup<3, AlongColumn>, ClassToken<TokenShape{kPixels, kFeatures}>, Repeat<2, Block>,
      DropTokens<TokenShape{kPatches, kFeatures}>, Flatten<kPixels, kFeatures>>;
  template <class Layers>
  using Around = Sequential<Conv2d<Conv2dShape{.height = 6,
                                               .width = 6,
                                               .d_in = 3,
                                               .d_out = kFeatures,
                                               .kernel_height = 3,
                                               .kernel_width = 3,
                                               .padding_height = 1,
                                               .padding_width = 1}>,
                            Layers, Linear<LinearShape{1, kPixels* kFeatures, 5}>>;
  using Model = Around<Middle>;
  using Twin = Around<Checkpointed<Middle>>;
  using Optimizer = StochasticBfloat16<ParameterGroups<Adafactor<StepScale::kRelative>>>;
  static constexpr Optimizer::Options kOptions{.weights = {.learning_rate = 0.05f}};
  static constexpr unsigned kMasks = kNoMasks;
};

/// A forecast's norm around branches side by side.
struct Forecast : Defaults {
  static constexpr const char* kName = "forecast";
  using Branches =
      Residual<Sum<Sequential<Norm, MultiHeadAttention<kSelf>>,
                   Sequential<Norm, FeedForward<FeedForwardShape{
                                        .rows = zoo::kTokens, .d_model = kWidth, .d_ff = kInner}>>>>;
  template <class Layers>
  using Around = Sequential<ReversibleNorm<Layers, ReversibleNormOptions{.affine = true}>,
                            ReversibleNorm<Linear<LinearShape{zoo::kTokens, kWidth, kWidth}>>,
                            Pool<PoolingKind::kMean>, Classify>;
  using Model = Around<Branches>;
  using Twin = Around<Checkpointed<Branches>>;
};

/// Attention gated token by token, and features by their mean over all tokens.
struct Gated : Defaults {
  static constexpr const char* kName = "gated";
  using Gates = Residual<Sequential<
      Norm,
      Product<MultiHeadAttention<kSelf>,
              Sequential<Linear<LinearShape{zoo::kTokens, kWidth, kWidth}>, Sigmoid<zoo::kTokens, kWidth>>>,
      Product<
          Identity<zoo::kTokens, kWidth>,
          Sequential<Pool<PoolingKind::kMean>, Linear<LinearShape{1, kWidth, kWidth}>, Sigmoid<1, kWidth>>>>>;
  template <class Layers>
  using Around = Sequential<Project, Layers, Pool<PoolingKind::kMean>, Classify>;
  using Model = Around<Gates>;
  using Twin = Around<Checkpointed<Gates>>;
};

/// Attention to every second token, by a convolution.
struct Reduced : Defaults {
  static constexpr const char* kName = "reduced";
  static constexpr int kKept = 8;
  using Branch = Residual<Sequential<
      Norm,
      ReducedAttention<
          Sequential<Conv1d<Conv1dShape{
                         .seq_len = zoo::kTokens, .d_in = kWidth, .d_out = kWidth, .kernel = 2, .stride = 2}>,
                     LayerNorm<NormShape{kKept, kWidth}>>,
          MultiHeadAttention<AttentionShape{
              .seq_len = zoo::kTokens, .d_model = kWidth, .num_heads = 2, .kv_len = kKept}>>>>;
  template <class Layers>
  using Around = Sequential<Project, Layers, Pool<PoolingKind::kMean>, Classify>;
  using Model = Around<Branch>;
  using Twin = Around<Checkpointed<Branch>>;
  static constexpr unsigned kMasks = kNoMasks;
};

/// A layer of one's own, in as little memory as a Cortex-M0 has.
struct OwnLayer : Defaults {
  static constexpr const char* kName = "own_layer";
  static constexpr int kTokens = 5;
  using Model =
      Sequential<Linear<LinearShape{.rows = kTokens, .d_in = 2, .d_out = 8}>, ::PRelu<kTokens, 8>,
                 MultiHeadAttention<AttentionShape{.seq_len = kTokens, .d_model = 8, .num_heads = 2}>,
                 ::PRelu<kTokens, 8>>;
  using Loss = Huber<>;
  using Optimizer = Sgd<>;
  static constexpr Optimizer::Options kOptions{.learning_rate = 0.3f};
  static constexpr unsigned kMasks = kNoMasks | bit(Masking::kCausal);
  static constexpr bool kStreams = true;
};

template <class... Entries>
struct List {};
/// All of them.
using Zoo = List<Attention, EncoderAfter, Repeated, Recomputed, Shared, Llama, Translator, Words, Convolution,
                 Adapters, AdaptedLayers, Int8Base, PackedBase, TokenByToken, Pooled, Image, Forecast, Gated,
                 Reduced, OwnLayer>;

}  // namespace zoo
