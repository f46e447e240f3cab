// Misuse of attune/models that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: repeat_of_no_layer
// error: attune::Repeat and SharedRepeat: use 1 to 24 layers
using Layers = attune::Repeat<0, attune::Linear<attune::LinearShape{2, 3, 3}>>;
attune::Trainer<Layers> trainer;
Layers::Input x{};

int main() { return trainer.step(x, x).ok(); }

// case: shared_repeat_of_too_many_layers
// error: attune::Repeat and SharedRepeat: use 1 to 24 layers
using Layers = attune::SharedRepeat<25, attune::Linear<attune::LinearShape{2, 3, 3}>>;
attune::Trainer<Layers> trainer;
Layers::Input x{};

int main() { return trainer.step(x, x).ok(); }

// case: shared_repeat_of_another_width
// error: attune: the output of a layer does not fit the input of the next; see output_fits_input<layer, next, output
attune::SharedRepeat<2, attune::Linear<attune::LinearShape{2, 3, 4}>>::Parameters parameters;

// case: shared_repeat_of_ids
// error: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another layer or stand
#include <attune/layers/embedding.hpp>

attune::SharedRepeat<2,
                     attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: adapted_in_roles_that_nothing_has
// error: attune::Adapted: no weight of the layer has one of these roles; name others in LowRank
// errors: 2  then there is nothing to train, either
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;  // no queries, no values
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::Adapted<Layer, kLayer, attune::LowRank{.rank = 2}>> trainer;

// case: adapted_layer_without_sets
// error: attune::Adapted: the layer and its parts need ParametersOf<Matrix, Vector>, for sets with factors
#include "layer_without_sets.hpp"

attune::Trainer<attune::Adapted<ByHand, kByHand, attune::LowRank{.rank = 2}>> trainer;

// case: adapted_of_rank_zero
// error: attune::LowRank: the rank must be positive
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
constexpr Layer::Parameters kLayer{};
attune::Adapted<Layer, kLayer, attune::LowRank{.rank = 0, .alpha = 1}>::Parameters parameters;

// case: biases_and_norms_of_a_layer_without_sets
// error: attune::BiasesAndNorms: the layer and its parts need ParametersOf<Matrix, Vector>, for sets without
#include "layer_without_sets.hpp"

using Model = attune::Sequential<ByHand, ByHand::Own>;
constexpr Model::Parameters kModel{};
attune::BiasesAndNorms<Model, kModel>::Parameters parameters;

// case: biases_and_norms_where_there_are_none
// error: attune::BiasesAndNorms: the layer has no bias and no normalization to train
// errors: 2  then there is nothing to train, either
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8, .bias = false}>;
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::BiasesAndNorms<Layer, kLayer>> trainer;

// case: biases_of_an_adapted_layer
// error: attune::BiasesAndNorms, Adapted: the layer contains an Adapted layer; merge() its factors first
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
using Adapted = attune::Adapted<
    Layer, kLayer, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections, .biases_and_norms = true}>;
constexpr Adapted::Parameters kAdapted{};
attune::BiasesAndNorms<Adapted, kAdapted>::Parameters parameters;

// case: decoder_layer_in_a_sequential
// error: attune::DecoderLayer: the layer has no memory; put it into the Decoder of EncoderDecoder<Encoder
// kilobytes: 57  the way from the call to the layer
#include "encoder_decoder.hpp"

template void run<attune::Sequential<attune::Linear<attune::LinearShape{3, 4, 4}>, Decoder>>();

// case: embedding_behind_a_layer
// error: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another
using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{4, 8, 8}>,
    attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>;
Model::Parameters parameters;

// case: encoder_above_frozen_decoder_layers
// error: attune::EncoderDecoder: a Frozen first decoder layer keeps no tape for the memory's gradient
// kilobytes: 10  the names of the layers
#include "encoder_decoder.hpp"

using Layer = attune::DecoderLayer<kDecoder>;
static Layer::Parameters constants;
using Model =
    attune::EncoderDecoder<Encoder, attune::Sequential<attune::Frozen<Layer, constants>,
                                                       attune::Linear<attune::LinearShape{3, 4, 4}>>>;
static_assert(sizeof(Model::Parameters) > 0);

// case: encoder_decoder_mask_for_an_encoder
// error: attune::EncoderDecoderMask: attention outside of an EncoderDecoder takes one mask; move those
// kilobytes: 35  the way from the call to the layer
#include "encoder_decoder.hpp"

void masked(attune::Trainer<Encoder>& trainer, const Encoder::Input& x) {
  (void)trainer.accumulate(x, x, attune::EncoderDecoderMask<>{});
}

// case: each_group_of_ids
// error: attune::EachGroup: the layer takes token ids; put the embedding in front of EachGroup
#include <attune/layers/embedding.hpp>
#include <attune/models/each_group.hpp>

attune::EachGroup<2, attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: each_group_of_none
// error: attune::EachGroup: the number of groups must be positive
#include <attune/models/each_group.hpp>

attune::EachGroup<0, attune::Linear<attune::LinearShape{2, 3, 3}>> layer;

// case: each_group_of_decoder_layers
// error: attune::EachGroup: a decoder layer attends to the memory of the whole model, and groups have none; use encoder
#include <attune/models/each_group.hpp>
#include "encoder_decoder.hpp"

attune::EachGroup<2, Decoder> layer;

// case: each_group_with_a_mask
// error: attune::EachGroup: a mask or a length of the call is that of all tokens, and groups have none; leave it out
// kilobytes: 20  the way from the call to the layer
#include <attune/models/each_group.hpp>

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Model = attune::EachGroup<2, Attention>;
void call(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
          Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::KeyPaddingMask<8>{});
}

// case: encoder_decoder_of_another_memory
// error: attune::EncoderDecoder: the encoder's output is not the memory of a decoder layer
// kilobytes: 11  the way from the call to the layer
#include "encoder_decoder.hpp"

constexpr attune::EncoderLayerShape kLonger{.attention = {.seq_len = 7, .d_model = 4, .num_heads = 2},
                                            .d_ff = 6};
using Model = attune::EncoderDecoder<attune::EncoderLayer<kLonger>, Decoder>;
static attune::Trainer<Model> trainer;
void train(const Model::Input& x, const Model::Output& y) { (void)trainer.accumulate(x, y); }

// case: encoder_decoder_of_ids_and_a_matrix
// error: attune::EncoderDecoder: source and target must both be token ids, or matrices with the same number
#include "encoder_decoder.hpp"

using Ids = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 9, .d_model = 4}>;
using Model = attune::EncoderDecoder<Encoder, attune::Sequential<Ids, Decoder>>;
static_assert(sizeof(Model::Parameters) > 0);

// case: encoder_decoder_with_one_mask
// error: attune::EncoderDecoder: one mask is ambiguous; pass EncoderDecoderMask{source, target}
// kilobytes: 64  the way from the call to the layer
#include "encoder_decoder.hpp"

using Model = attune::EncoderDecoder<Encoder, Decoder>;
void masked(attune::Trainer<Model>& trainer, const Model::Input& x, const Model::Output& target) {
  (void)trainer.accumulate(x, target, attune::CausalMask{});
}

// case: encoder_decoder_without_decoder_layers
// error: attune::EncoderDecoder: no layer of the decoder attends to the encoder's output
#include "encoder_decoder.hpp"

using Model = attune::EncoderDecoder<Encoder, Encoder>;
static_assert(sizeof(Model::Parameters) > 0);

// case: encoder_of_parts_that_do_not_fit
// error: attune: the output of a layer does not fit the input of the next
// errors: 2  the network fits neither what is before nor what is behind it
// kilobytes: 17  the way from the call to the layer
using Layer = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = 4, .d_model = 6, .d_ff = 8}>,
    attune::RmsNorm<attune::NormShape{.rows = 4, .d_model = 8}>>;
Layer::Tape tape;

// case: encoder_without_d_ff
// error: attune::EncoderLayer, DecoderLayer: seq_len, d_model, num_heads and d_ff must be positive; set
#include <attune/models/encoder_layer.hpp>

attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}}>::Input x;

// case: factors_of_single_elements
// error: attune::Adapted: factors take the gradient of a weight as a product; use add_product()
// kilobytes: 15  the path of the call goes through the trainer and the adapted layer
template <int kRows, int kIn, int kOut>
struct Projection {
  using Scalar = float;
  using Input = attune::Tensor<float, kRows, kIn>;
  using Output = attune::Tensor<float, kRows, kOut>;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Matrix<float, kIn, kOut> weight;
    ATTUNE_FIELDS(Weight(weight))
  };
  using Parameters = ParametersOf<attune::Tensor>;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const auto& p, attune::ConstView<Input> x, attune::View<Output> y, auto&...) {
    attune::multiply(x, p.weight, y);
  }
  static void backward(const auto& p, attune::ConstView<Input> x, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, auto& gradients, Scratch&) {
    for (int i = 0; i < kIn; ++i) {
      for (int j = 0; j < kOut; ++j) gradients.weight(i, j) += x(0, i) * dy(0, j);
    }
    if constexpr (attune::kWanted<decltype(dx)>) attune::multiply_transposed(dy, p.weight, dx);
  }
};

using Layer = Projection<1, 4, 3>;
constexpr Layer::Parameters kBase{};
using Lora = attune::Adapted<Layer, kBase, attune::LowRank{.rank = 2, .roles = attune::Role::kEverything}>;
static attune::Trainer<Lora, attune::CrossEntropy<>> trainer;

int main() { return trainer.step(attune::Tensor<float, 1, 4>{}, std::array<int, 1>{1}).ok(); }

// case: frozen_first_behind_what_is_trained
// error: attune::Sequential: a model that begins with a Frozen layer keeps no tape for dx; list its layers
// kilobytes: 34  the way from the call to the layer
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
using Block = attune::Sequential<attune::Frozen<Layer, kLayer>, Layer>;
using Model = attune::Sequential<Layer, attune::Residual<Block>>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }

// case: frozen_layer_without_sets
// error: attune::Frozen: after a trained layer, this layer and its parts need ParametersOf<Matrix, Vector>
// kilobytes: 21  the way from the call to the layer
#include "layer_without_sets.hpp"

using Model = attune::Sequential<ByHand::Own, attune::Frozen<ByHand, kByHand>>;
attune::Trainer<Model> trainer;

void train(const Model::Input& x, const Model::Output& target) { (void)trainer.step(x, target, {}); }

// case: frozen_with_constants_of_another_layer
// error: attune::Frozen, BiasesAndNorms, Adapted: the constants do not match the layer: they differ in
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
static attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 4}>::Parameters other;
using Model = attune::Sequential<attune::Frozen<Head, other>, attune::Linear<attune::LinearShape{1, 2, 4}>>;
static_assert(sizeof(Model::Parameters) > 0);

// case: linear_probe_of_no_sequential
// error: attune::LinearProbe: the model must be a Sequential whose last layer with parameters is the head; use Sequential<Frozen<Body, kBody>, Head>
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>;
static Model::Parameters constants;
using Tuned = attune::LinearProbe<Model, constants>;
static_assert(sizeof(Tuned::Parameters) > 0);

// case: last_block_without_a_block
// error: attune::LastBlock: the model must be a Sequential with an EncoderLayer or a DecoderLayer among its layers
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>>;
static Model::Parameters constants;
using Tuned = attune::LastBlock<Model, constants>;

// case: last_block_and_linear_probe_with_constants_of_another_model
// error: attune::Frozen, BiasesAndNorms, Adapted: the constants do not match the layer: they differ in
using namespace attune;
constexpr AttentionShape kSelf{.seq_len = 2, .d_model = 4, .num_heads = 2};
template <int classes>
using Of = Sequential<EncoderLayer<EncoderLayerShape{.attention = kSelf, .d_ff = 5}>,
                      Linear<LinearShape{.rows = 2, .d_in = 4, .d_out = classes}>>;
static Of<3>::Parameters constants;
using Tuned = LastBlock<Of<2>, constants>;
using Probe = LinearProbe<Of<2>, constants>;
using Features = LinearProbeFeatures<Of<2>, constants>;

// case: features_of_a_head_alone
// error: attune::LinearProbeFeatures: no layer is before the head, so features are the inputs
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 2}>>;
static Model::Parameters constants;
using Features = attune::LinearProbeFeatures<Model, constants>;

// case: logits_of_several_rows
// error: attune::sample: logits must be [1, vocabulary] of SamplingScratch
attune::Tensor<float, 4, 10> logits;
attune::SamplingScratch<10> scratch;
attune::Rng rng(1);
const auto next = attune::sample(logits, {}, rng, scratch);

// case: numbers_that_are_none
// Options beyond what they can be, infinity among them.
// error: attune::LowRank: alpha must be in [1e-30, 1e30]
// error: attune::MultiHeadAttention: offset must be in [0, 2^30]
// error: attune::RotaryPositions: base must be in (1, 1e300]
// error: attune::SinusoidalPositions: base must be in (1, 1e300]
// error: attune::Huber: delta must be at least 1e-30
// error: attune::LayerNorm, RmsNorm, DeviationNorm: epsilon must be in [0, 1e30]
// error: attune::GroupNorm, ReversibleNorm: epsilon must be in [0, 1e30]
// error: attune::KeyValueCache: a cache keeps at most 2^28 tokens and 2^28 sinks
// errors: 8  eight mistakes
// kilobytes: 13  eight mistakes
using namespace attune;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Attention = MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
constexpr Attention::Parameters kAttention{};
Adapted<Attention, kAttention, LowRank{.rank = 2, .alpha = 0}>::Parameters parameters;
MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .offset = 1 << 30 | 1}>::Input
    x;
using Rotated = RotaryPositions<RotaryShape{.seq_len = 4, .num_heads = 2, .d_k = 4, .base = kInfinity}>;
Rotated::Input rotated;
SinusoidalPositions<PositionShape{.seq_len = 4, .d_model = 8, .base = kInfinity}>::Input tokens;
constexpr bool kMean = Huber<HuberOptions{.delta = 1e-60}>::kMeanOverBatch;
LayerNorm<NormShape{.rows = 4, .d_model = 8, .epsilon = kInfinity}>::Input normalized;
ReversibleNorm<Attention, ReversibleNormOptions{.epsilon = -1}>::Output forecast;
KeyValueCache<Attention, CacheShape{.window = 1 << 28 | 1}> cache;

// case: quantized_tape_of_a_single_layer
// error: attune::QuantizedTape: packing the tape of a single layer saves nothing; use QuantizedTape on the whole
// error: attune::QuantizedTape: packing the tape of a single layer saves nothing; use QuantizedTape on the whole
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
static attune::Trainer<attune::QuantizedTape<Layer>> trainer;

// case: quantized_tape_of_doubles
// error: attune::QuantizedTape: an 8- or 16-bit tape needs a model in float
using Layer = attune::EncoderLayer<
    attune::EncoderLayerShape{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}, double>;
static attune::QuantizedTape<Layer>::Tape tape;

// case: repeat_of_an_embedding
// error: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another
attune::Repeat<2, attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: residual_as_norm
// error: attune::EncoderLayer, DecoderLayer: the norm needs recompute(parameters, x, tape, y); a Residual
using Layer = attune::EncoderLayerOf<
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>,
    attune::SwiGlu<attune::FeedForwardShape{.rows = 4, .d_model = 8, .d_ff = 8}>,
    attune::Residual<attune::RmsNorm<attune::NormShape{.rows = 4, .d_model = 8}>>>;
Layer::Tape tape;

// case: residual_of_an_embedding
// error: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another
attune::Residual<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: residual_of_another_width
// error: the output of a layer does not fit the input of the next
// error by clang: 8, 16, 8, 8>
// error by gcc: int output_rows = 8; int output_cols = 16; int input_rows = 8; int input_cols = 8
#include <attune/layers/linear.hpp>
#include <attune/models/residual.hpp>

attune::Residual<attune::Linear<attune::LinearShape{8, 8, 16}>> layer;

// case: mask_from_ids_of_a_matrix
// error: attune::MaskFromIds: the model takes no token ids; give padding with each call, as in a SequenceLength
// errors: 2  it uses no mask, too
#include <attune/layers/linear.hpp>
#include <attune/models/mask_from_ids.hpp>

attune::MaskFromIds<attune::Linear<attune::LinearShape{8, 8, 16}>> layer;

// case: mask_from_ids_without_a_layer_that_takes_one
// error: attune::MaskFromIds: no layer of the model uses a mask; put attention or pooling into it
#include <attune/layers/embedding.hpp>
#include <attune/models/mask_from_ids.hpp>

attune::MaskFromIds<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: mask_from_ids_of_a_second_table
// error: attune::MaskFromIds: table must be less than the number of ids for each token
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/sequential.hpp>

attune::MaskFromIds<
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                       attune::Pooling<attune::PoolingShape{4, 8}>>,
    attune::MaskFromIdsOptions{.table = 1}>
    layer;

// case: mask_from_ids_whose_padding_is_no_id
// error: attune::MaskFromIds: padding must be below the vocabulary: it is an id, with a row of the embedding
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/sequential.hpp>

attune::MaskFromIds<
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                       attune::Pooling<attune::PoolingShape{4, 8}>>,
    attune::MaskFromIdsOptions{.padding = 9}>
    layer;

// case: mask_from_ids_whose_padding_is_an_id_of_another_table
// error: attune::MaskFromIds: padding must be below the vocabulary: it is an id, with a row of the embedding
#include <attune/layers/embedding_sum.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/sequential.hpp>

using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
using Types = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 2, .d_model = 8}>;
attune::MaskFromIds<
    attune::Sequential<attune::EmbeddingSum<Words, Types>, attune::Pooling<attune::PoolingShape{4, 8}>>,
    attune::MaskFromIdsOptions{.padding = 5, .table = 1}>
    layer;

// case: reversible_norm_of_ids
// error: attune::ReversibleNorm: the model takes token ids, which have no mean; give it a model of matrices
#include <attune/layers/embedding.hpp>
#include <attune/models/reversible_norm.hpp>

attune::ReversibleNorm<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>
    layer;

// case: reversible_norm_of_other_features
// error: attune::ReversibleNorm: the model's output needs the features of its input, whose mean and deviation it
#include <attune/layers/linear.hpp>
#include <attune/models/reversible_norm.hpp>

attune::ReversibleNorm<attune::Linear<attune::LinearShape{8, 8, 16}>> layer;

// case: sample_of_another_scalar
// error: attune::sample: logits and scratch have different scalar types; use SamplingScratch<vocabulary
// errors: 2  what cannot be read as the scratch's scalar is told, too
attune::Sampled use(const attune::Tensor<double, 1, 5>& logits, attune::Rng& rng,
                    attune::SamplingScratch<5>& scratch) {
  return attune::sample(logits, {}, rng, scratch);
}

// case: product_of_an_embedding
// error: attune::Product: a layer that takes token ids cannot be a factor; put the embedding in front
#include <attune/layers/embedding.hpp>
#include <attune/models/product.hpp>

using Table = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
attune::Product<Table, Table> layer;

// case: product_of_other_inputs
// error: attune::Product: both layers need inputs of one shape and scalar type
#include <attune/layers/linear.hpp>
#include <attune/models/product.hpp>

attune::Product<attune::Identity<8, 9>, attune::Linear<attune::LinearShape{8, 8, 9}>> layer;

// case: product_of_other_widths
// error: attune::Product: both outputs need one shape, or the second one a single row, which
#include <attune/layers/linear.hpp>
#include <attune/models/product.hpp>

attune::Product<attune::Identity<8, 8>, attune::Linear<attune::LinearShape{8, 8, 9}>> layer;

// case: product_whose_gate_is_its_input
// error: attune::Product: an Identity must be the first layer; exchange the two
#include <attune/layers/linear.hpp>
#include <attune/models/product.hpp>

attune::Product<attune::Linear<attune::LinearShape{8, 8, 8}>, attune::Identity<8, 8>> layer;

// case: product_with_one_row_in_a_stream
// error: attune: a layer that needs the whole sequence, such as a pooling, EachGroup or ReducedAttention, cannot
#include <attune/execution/stream.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/product.hpp>

using Layer = attune::Product<attune::Identity<8, 4>, attune::Pooling<attune::PoolingShape{8, 4}>>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8}> cache;

// case: reduced_attention_of_other_tokens
// error: attune::ReducedAttention: the reduction's output has other rows or columns than the attention's kv_len,
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Reduction = attune::AvgPool1d<attune::Pool1dShape{.seq_len = 8, .d_model = 4, .kernel = 2}>;
using Attention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 8, .d_model = 4, .num_heads = 2, .kv_len = 2}>;
attune::ReducedAttention<Reduction, Attention> layer;

// case: reduced_attention_of_another_layer
// error: attune::ReducedAttention: the second layer must be a MultiHeadAttention; its kv_len is the
// errors: 2  the constraint of the class that takes it is told, too
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Reduction = attune::AvgPool1d<attune::Pool1dShape{.seq_len = 8, .d_model = 4, .kernel = 2}>;
attune::ReducedAttention<Reduction, attune::Linear<attune::LinearShape{8, 4, 4}>> layer;

// case: reduced_attention_of_another_input
// error: attune::ReducedAttention: the reduction's input must be the third layer's; without one, it needs seq_len
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Reduction = attune::AvgPool1d<attune::Pool1dShape{.seq_len = 6, .d_model = 4, .kernel = 2}>;
using Attention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 8, .d_model = 4, .num_heads = 2, .kv_len = 3}>;
attune::ReducedAttention<Reduction, Attention> layer;

// case: reduced_attention_of_other_queries
// error: attune::ReducedAttention: the third layer's output needs seq_len rows and d_model columns, as the
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Reduction = attune::AvgPool1d<attune::Pool1dShape{.seq_len = 8, .d_model = 4, .kernel = 2}>;
using Attention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 8, .d_model = 4, .num_heads = 2, .kv_len = 4}>;
attune::ReducedAttention<Reduction, Attention, Reduction> layer;

// case: reduced_attention_in_a_stream
// error: attune: a layer that needs the whole sequence, such as a pooling, EachGroup or ReducedAttention, cannot
#include <attune/execution/stream.hpp>
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Reduction = attune::AvgPool1d<attune::Pool1dShape{.seq_len = 8, .d_model = 4, .kernel = 2}>;
using Attention = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 8, .d_model = 4, .num_heads = 2, .kv_len = 4}>;
attune::KeyValueCache<attune::ReducedAttention<Reduction, Attention>, attune::CacheShape{.capacity = 8}>
    cache;

// case: reduced_attention_with_padding
// error: attune::ReducedAttention: a mask or a length of tokens does not hide reduced tokens; leave it out
// kilobytes: 21  the way from the call to the layer
#include <attune/attention/sequence_length.hpp>
#include <attune/layers/window_pooling.hpp>
#include <attune/models/reduced_attention.hpp>

using Layer =
    attune::ReducedAttention<attune::AvgPool1d<attune::Pool1dShape{.seq_len = 8, .d_model = 4, .kernel = 2}>,
                             attune::MultiHeadAttention<attune::AttentionShape{
                                 .seq_len = 8, .d_model = 4, .num_heads = 2, .kv_len = 4}>>;
void infer(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
           Layer::InferenceScratch& scratch, const attune::SequenceLength<8>& length) {
  attune::infer<Layer>(parameters, x, y, scratch, length);
}

// case: sequential_that_does_not_fit
// error: the output of a layer does not fit the input of the next
// error: output_fits_input
// error by clang: 8, 16, 8, 32>
// error by gcc: int output_rows = 8; int output_cols = 16; int input_rows = 8; int input_cols = 32
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>

using Embed = attune::Linear<attune::LinearShape{8, 8, 16}>;
using Head = attune::Linear<attune::LinearShape{8, 32, 4}>;
attune::Sequential<Embed, Head>::Parameters parameters;

// case: sum_of_an_embedding
// error: attune::Sum: a layer that takes token ids cannot be a term; use EmbeddingSum
#include <attune/layers/embedding.hpp>
#include <attune/models/sum.hpp>

using Table = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
attune::Sum<Table, Table> layer;

// case: sum_of_one_layer
// error: attune::Sum: use 2 to 24 layers
#include <attune/layers/linear.hpp>
#include <attune/models/sum.hpp>

attune::Sum<attune::Linear<attune::LinearShape{8, 8, 8}>> layer;

// case: sequential_of_other_scalars
// error: attune: a layer and the next have different scalar types, which are float unless you chose another
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>

using Embed = attune::Linear<attune::LinearShape{8, 8, 16}, double>;
using Head = attune::Linear<attune::LinearShape{8, 16, 4}>;
attune::Sequential<Embed, Head>::Parameters parameters;

// case: sum_of_other_widths
// error: attune::Sum: the layers' inputs, and their outputs, need the same shape
#include <attune/layers/linear.hpp>
#include <attune/models/sum.hpp>

attune::Sum<attune::Linear<attune::LinearShape{8, 8, 8}>, attune::Linear<attune::LinearShape{8, 8, 9}>> layer;

// case: tied_body_of_another_width
// error: attune: the output of a layer does not fit the input of the next; see output_fits_input<layer
// output rows, output cols, input rows, input cols> names them
using Model =
    attune::Tied<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                 attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 7}>>;
Model::Parameters parameters;

// case: trainer_of_a_decoder_layer
// error: attune::DecoderLayer: the layer has no memory; put it into the Decoder of EncoderDecoder<Encoder
// kilobytes: 34  the way from the call to the layer
#include "encoder_decoder.hpp"

using Layer = attune::DecoderLayer<kDecoder>;
static attune::Trainer<Layer> trainer;
void train(const Layer::Input& x) { (void)trainer.accumulate(x, x); }
