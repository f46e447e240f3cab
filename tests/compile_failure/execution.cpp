// Misuse of attune/execution that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: cache_in_8_bits_of_doubles
// error: attune::KeyValueCache: an 8-bit cache needs a model in float; leave .precision out of CacheShape
using Layer =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}, double>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .precision = attune::CachePrecision::kInt8}>
    cache;

// case: cache_of_a_capacity_and_a_window
// error: attune::KeyValueCache: set either a capacity or a window in CacheShape, to a positive number of
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .window = 4}> cache;

// case: cache_of_another_model
// error: attune: the cache belongs to another model; use KeyValueCache<Model, shape>
constexpr attune::AttentionShape kOne{.seq_len = 4, .d_model = 8, .num_heads = 2};
constexpr attune::AttentionShape kOther{.seq_len = 4, .d_model = 8, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kOne>;
using Cache = attune::KeyValueCache<attune::MultiHeadAttention<kOther>, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
                   attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch) {
  return Layer::step(parameters, x, y, cache, scratch);
}

// case: class_weights_as_the_mask
// error: attune: this argument is not a mask; masks have hide and bias (execution/attention_mask.hpp)
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
constexpr attune::WeightedCrossEntropy<4> kLoss{{{1, 2, 3, 4}}};
attune::Trainer<Layer, attune::WeightedCrossEntropy<4>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}, attune::NoClipping{}, kLoss).ok(); }

// case: layer_of_a_length_that_nothing_tells
// error: attune::IsLayer: kAbilities declares a length or a mask, but no context; set .takes_context and
// kilobytes: 22  the way from the call to the layer
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {
  static constexpr attune::Abilities kAbilities{.takes_length = true};
};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  Model::forward(parameters, x, y, scratch);
}

// case: layer_of_another_length
// error: attune::IsLayer: the type has no Stream<tokens, cache>: the same layer for that many tokens if
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {
  template <int tokens>
  using WithLength = WholeLayer<tokens, 4>;
};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>, Own>;
attune::Trainer<Model, attune::MeanSquaredError> trainer;

// case: layer_that_says_of_a_length_by_itself
// error: attune::IsLayer: declare abilities in static constexpr attune::Abilities kAbilities{.takes_length =
struct Own : attune::Linear<attune::LinearShape{4, 8, 8}> {
  static constexpr bool kTakesLength = true;
};
attune::Sequential<Own>::Tape tape;

// case: layer_that_wants_dx
// error: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
// errors: 3  the constraint is told, too, and with GCC the name behind the type
#include "own_layer.hpp"

struct Own : OwnLayer<2, 3> {
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output>,
                       attune::View<Input>, Parameters&, Scratch&);
};
attune::Repeat<2, Own>::Tape tape;

// case: layer_whose_parameters_are_no_set
// error: attune::IsLayer: its Parameters have no ATTUNE_FIELDS(Weight(w), ...) that lists their members
// errors: 3  the constraint is told, too, and with GCC the name behind the type
struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  struct Parameters {
    float slope;
  };
};
attune::Sequential<Own>::Tape tape;

// case: layer_with_a_stream_of_a_cache_alone
// error: attune::IsLayer: the type has no Stream<tokens, cache>: the same layer for that many tokens if
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {
  template <attune::CacheShape>
  struct Stream {};
};
using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>, Own>;
attune::Trainer<Model, attune::MeanSquaredError> trainer;

// case: layer_without_a_tape
// error: attune::IsLayer: the type has no Tape, Scratch or InferenceScratch; each may be an empty struct
// errors: 2  the constraint of the class that takes it is told, too
struct Own {
  using Scalar = float;
  using Input = attune::Tensor<float, 2, 3>;
  using Output = Input;
  using Parameters = attune::NoParameters;
};
attune::Residual<Own> layer;

// case: layer_without_backward
// error: attune::IsLayer: there is no backward(parameters, x, tape, dy, dx, gradients, scratch[, mask])
// errors: 3  the constraint is told, too, and with GCC the name behind the type
#include "own_layer.hpp"

struct Own : OwnLayer<2, 3> {};
attune::Sequential<Own>::Tape tape;

// case: length_for_a_layer_in_which_tokens_meet
// error: attune::IsLayer: this layer mixes tokens but takes neither a mask nor a length, so it would read
// kilobytes: 36  the way from the call to the layer
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::SequenceLength<4>{});
}

// case: mask_for_a_layer_in_which_tokens_meet
// error: attune::IsLayer: this layer mixes tokens but takes neither a mask nor a length, so it would read
// kilobytes: 35  the way from the call to the layer
#include "own_layer.hpp"

struct Blurred : WholeLayer<4, 8> {};
using Model = attune::Sequential<Encoder, Blurred>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::CausalMask{});
}

// case: mask_for_a_model_without_attention
// error: attune: no layer of this model uses a mask; leave it out, or add attention or pooling
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>,
                                 attune::Relu<4, 8>>;

void use(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y,
         Model::InferenceScratch& scratch) {
  attune::infer<Model>(parameters, x, y, scratch, attune::KeyPaddingMask<4>{});
}

// case: mask_for_a_model_without_use
// error: attune: no layer of this model uses a mask; leave it out, or add attention or pooling
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

int main() { return trainer.step(x, target, {}, attune::NoClipping{}, attune::CausalMask{}).ok(); }

// case: mask_in_the_place_of_a_context
// error: attune: a layer's forward and backward take a Context, not a mask; call attune::infer<Layer>
// kilobytes: 17  the overloads that do not fit
// errors: 2  the call fits no forward, too
using Layer = attune::MultiHeadAttention<attune::AttentionShape{4, 8, 2}>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch, attune::CausalMask{});
}

// case: mask_without_padding_for_pooling
// error: attune: this model uses only a mask's padding, and this mask has none; leave it out, or add
using Pool = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 8}>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>, Pool>;
attune::Trainer<Model> trainer;
void use(const Model::Input& x, const Model::Output& target) {
  trainer.step(x, target, {}, attune::NoClipping{}, attune::CausalMask{});
}

// case: pass_in_slices_of_a_temporary
// error: attune: a pass in slices reads its data until it ends, and this is a temporary; store it in a
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::Trainer<Model> trainer;
Model::Output target;
auto pass = trainer.accumulate_in_slices(Model::Input{}, target);

// case: prediction_in_slices_into_a_temporary
// error: attune: a pass in slices reads its data until it ends, and this is a temporary; store it in a
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::Trainer<Model> trainer;
Model::Input x;
Model::InferenceScratch scratch;
auto pass = attune::infer_in_slices<Model>(trainer.parameters(), x, Model::Output{}, scratch);

// case: sinks_without_a_window
// error: attune::KeyValueCache: sinks need a window; set .window as well
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::KeyValueCache<Layer, attune::CacheShape{.capacity = 8, .sinks = 2}> cache;

// case: stream_of_a_layer_that_inherits
// error: attune: a layer would inherit its base's Stream: give it its own, or `using SteppedAs` of its own
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2}, .d_ff = 8}>;
struct Doubled : Encoder {
  template <class... Arguments>
  static void forward(const Arguments&...) {}
};

attune::KeyValueCache<Doubled, attune::CacheShape{.capacity = 4}> cache;

// case: stream_of_a_layer_without_length
// error: attune: a layer of the model has no Stream<tokens, cache>: the same layer for that many tokens if
#include "own_layer.hpp"

struct Own : WholeLayer<8, 4> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;

// case: stream_of_an_inherited_length
// error: attune: a layer's Stream is another layer: for its own number of tokens it must be the layer
struct Own : attune::Linear<attune::LinearShape{8, 4, 4}> {};
attune::KeyValueCache<attune::Sequential<Own>, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;
