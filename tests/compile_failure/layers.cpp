// Misuse of attune/layers that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: causal_conv1d_with_padding
// error: leave padding at 0
using Layer = attune::Conv1d<attune::Conv1dShape{
    .seq_len = 8, .d_in = 6, .d_out = 4, .kernel = 3, .padding = 1, .causal = true}>;
Layer::Parameters parameters;

// case: conv1d_of_groups_that_do_not_divide
// error: d_in and d_out must be multiples of groups
using Layer =
    attune::Conv1d<attune::Conv1dShape{.seq_len = 8, .d_in = 6, .d_out = 4, .kernel = 3, .groups = 3}>;
Layer::Parameters parameters;

// case: dropout_of_everything
// error: attune::Dropout: probability must be in [0, 1); kept values are divided by 1 - probability
#include <attune/layers/dropout.hpp>

attune::Dropout<attune::DropoutShape{.rows = 2, .d_model = 4, .probability = 1.0}>::Input x;

// case: embedding_sum_of_a_linear
// error: attune::EmbeddingSum: it adds two Embeddings, or an EmbeddingSum and an Embedding
using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
using Types = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 2, .d_out = 8}>;
attune::Sequential<attune::EmbeddingSum<Words, Types>> model;

// case: embedding_sum_of_another_width
// error: attune::EmbeddingSum: both tables need the same seq_len, d_model and scalar
using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
using Types = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 2, .d_model = 6}>;
attune::Sequential<attune::EmbeddingSum<Words, Types>> model;

// case: epsilon_that_rounds_to_zero
// error: attune::LayerNorm, RmsNorm, DeviationNorm: epsilon is too small for the scalar, which rounds it to 0
using Norm = attune::LayerNorm<attune::NormShape{.rows = 4, .d_model = 8, .epsilon = 1e-50}>;
Norm::Tape tape;

// case: identity_without_rows
// error: attune::Identity: rows and features must be positive
#include <attune/layers/identity.hpp>

attune::Identity<0, 8> layer;

// case: ignored_token_status
// error: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/layers/embedding.hpp>

using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 2, .vocabulary = 4, .d_model = 3}>;
void look_up(const Layer::Parameters& parameters, Layer::Output& y) {
  Layer::forward(parameters, {{1, 2}}, y);
}

// case: layer_norm_without_rows
// error: attune::LayerNorm, RmsNorm, DeviationNorm: rows and d_model must be positive; set both in NormShape
#include <attune/layers/layer_norm.hpp>

attune::LayerNorm<attune::NormShape{.d_model = 4}>::Parameters parameters;

// case: linear_without_rows
// error: attune::Linear: rows, d_in and d_out must be positive; set all three in LinearShape
#include <attune/layers/linear.hpp>

attune::Linear<attune::LinearShape{.d_in = 4, .d_out = 4}>::Input x;

// case: pooling_of_longer_windows
// error: attune::AvgPool1d, MaxPool1d: the window is longer than the sequence with its padding
attune::AvgPool1d<attune::Pool1dShape{.seq_len = 4, .d_model = 2, .kernel = 5}>::Output y;

// case: stream_of_a_convolution_that_looks_ahead
// error: attune: only a causal Conv1d of stride 1 runs token by token; set .causal in Conv1dShape, as the
using Model = attune::Sequential<
    attune::Linear<attune::LinearShape{8, 4, 4}>,
    attune::Conv1d<attune::Conv1dShape{.seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 3, .padding = 1}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;

// case: stream_of_a_pooling
// error: attune: a layer that needs the whole sequence, such as a pooling, EachGroup or ReducedAttention, cannot
using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>,
                                 attune::Pooling<attune::PoolingShape{8, 4}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;

// case: prelu_of_some_slopes
// error: attune::Prelu: slopes must be 1 or d_model
attune::Prelu<attune::PreluShape{.rows = 2, .d_model = 4, .slopes = 2}>::Output y;

// case: pooling_of_more_padding_than_half_a_window
// error: attune::AvgPool2d, MaxPool2d: padding must be at most half a window
constexpr attune::Pool2dShape kShape{
    .height = 4, .width = 4, .d_model = 2, .kernel_height = 2, .kernel_width = 2, .padding_height = 2};
attune::MaxPool2d<kShape>::Output y;

// case: all_tokens_dropped
// error: attune::DropTokens: d_model and tokens must be positive, and seq_len more than tokens
attune::DropTokens<attune::TokenShape{.seq_len = 2, .d_model = 4, .tokens = 2}>::Output y;

// case: reshape_into_unequal_rows
// error: attune::Reshape: rows of one length need an out_rows that divides rows * d_model
attune::Reshape<attune::ReshapeShape{.rows = 3, .d_model = 3, .out_rows = 2}>::Output y;

// case: square_transpose_with_a_length
// error: attune::Reshape: feature by feature, with as many rows as tokens, a length or a mask would hide features; leave
using Square = attune::Transpose<4, 4>;
void call(const Square::Input& x, Square::Output& y, Square::InferenceScratch& scratch) {
  const attune::SequenceLength<4> length;
  attune::infer<Square>({}, x, y, scratch, length);
}

// case: grid_without_columns
// error: attune::TransposeGrid: rows, cols, d_model and cell must be positive; set the first three in TransposeGridShape
attune::TransposeGrid<attune::TransposeGridShape{.rows = 3, .d_model = 3}>::Output y;

// case: grid_with_a_length
// error: attune::TransposeGrid: tokens change their places, so a mask or a length of the call would hide others in
using Grid = attune::TransposeGrid<attune::TransposeGridShape{.rows = 2, .cols = 2, .d_model = 3}>;
void call(const Grid::Input& x, Grid::Output& y, Grid::InferenceScratch& scratch) {
  const attune::SequenceLength<4> length;
  attune::infer<Grid>({}, x, y, scratch, length);
}

// case: last_token_repeated_no_times
// error: attune::RepeatLastToken: seq_len, d_model and tokens must be positive; tokens are those added
attune::RepeatLastToken<attune::TokenShape{.seq_len = 3, .d_model = 3, .tokens = 0}>::Output y;

// case: last_token_repeated_with_a_length
// error: attune::RepeatLastToken: with a mask or a length, the last token may be padding; leave it out
using Longer = attune::RepeatLastToken<attune::TokenShape{.seq_len = 4, .d_model = 3, .tokens = 1}>;
void call(const Longer::Input& x, Longer::Output& y, Longer::InferenceScratch& scratch) {
  const attune::SequenceLength<4> length;
  attune::infer<Longer>({}, x, y, scratch, length);
}

// case: stream_of_a_sequence_pooling
// error: attune: a layer that needs the whole sequence, such as a pooling, EachGroup or ReducedAttention, cannot
using Model = attune::Sequential<attune::Linear<attune::LinearShape{8, 4, 4}>,
                                 attune::SequencePooling<attune::SequencePoolingShape{8, 4}>>;
attune::KeyValueCache<Model, attune::CacheShape{.capacity = 8}>::Scratch<> scratch;

// case: deviation_of_one_feature
// error: attune::DeviationNorm: one feature has no deviation
attune::DeviationNorm<attune::NormShape{.rows = 2, .d_model = 1}>::Output y;

// case: dilated_kernel_longer_than_the_sequence
// error: attune::Conv1d: the kernel is longer than the sequence with its padding
attune::Conv1d<attune::Conv1dShape{.seq_len = 4, .d_in = 2, .d_out = 2, .kernel = 3, .dilation = 2}>::Output
    y;

// case: group_norm_of_unequal_groups
// error: attune::GroupNorm: groups must divide d_model
attune::GroupNorm<attune::GroupNormShape{.rows = 2, .d_model = 5, .groups = 2}>::Output y;

// case: group_norm_with_an_epsilon_that_is_zero_in_float
// error: attune::GroupNorm, ReversibleNorm: epsilon is too small for the scalar, which rounds it to 0
attune::GroupNorm<attune::GroupNormShape{.rows = 2, .d_model = 4, .groups = 2, .epsilon = 1e-60}>::Output y;

// case: learned_positions_from_an_offset
// error: attune::LearnedPositions: the table has only the rows in use, from position 0; leave first at 0
attune::LearnedPositions<attune::PositionShape{.seq_len = 2, .d_model = 4, .first = 2}>::Output y;
