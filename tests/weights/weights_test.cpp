// Every form of weights gives the bits of tensors of one's own, in every layer that has weights.
#include <attune/weights/weights.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using attune::Reference, attune::Tensor, attune::TransposedReference, attune::TransposedTensor;

// The tensors of one set in the form of another.
template <class To, class From>
void copy_set(To& to, const From& from) {
  To::visit(
      [](const attune::TensorPath&, auto& target, const auto& source) {
        for (int i = 0; i < source.rows; ++i) {
          for (int j = 0; j < source.cols; ++j) target(i, j) = view(source)(i, j);
        }
      },
      static_cast<const attune::TensorPath*>(nullptr), to, from);
}
// References to the tensors of a set.
template <class To, class From>
void refer_to(To& to, const From& from) {
  To::visit([](const attune::TensorPath&, auto& target, const auto& source) { target = {source.values}; },
            static_cast<const attune::TensorPath*>(nullptr), to, from);
}

template <class Layer>
struct Pass {
  typename Layer::Input dx{};
  typename Layer::Output y, inferred;

  template <class Parameters, class Gradients>
  void operator()(const Parameters& parameters, const typename Layer::Input& x,
                  const typename Layer::Output& dy, Gradients& gradients) {
    static attune::detail::TapeOf<Layer, Gradients> tape;
    static attune::detail::ScratchOf<Layer, Gradients> scratch;
    static typename Layer::InferenceScratch inference;
    (void)Layer::forward(parameters, x, inferred, inference);
    (void)Layer::forward(parameters, x, y, tape, scratch);
    if constexpr (attune::detail::TakesIds<Layer>) {
      Layer::backward(parameters, x, tape, dy, attune::NoGradient{}, gradients, scratch);
    } else {
      Layer::backward(parameters, x, tape, dy, dx, gradients, scratch);
    }
  }
};

template <class Layer>
void expect_the_same_of_every_form(const typename Layer::Input& x) {
  static typename Layer::Parameters own, gradients;
  static typename Layer::template ParametersOf<TransposedTensor, Tensor> transposed, transposed_gradients;
  static typename Layer::template ParametersOf<TransposedTensor> all_transposed;
  typename Layer::template ParametersOf<Reference> references;
  typename Layer::template ParametersOf<TransposedReference, Reference> in_place;
  typename Layer::Output dy;
  Pass<Layer> expected, run;
  attune::Rng rng(6);
  check::fill_set(own, rng);
  check::fill(dy, rng);
  copy_set(transposed, own);
  copy_set(all_transposed, own);
  refer_to(references, own);
  refer_to(in_place, transposed);

  attune::set_zero(gradients);
  expected(own, x, dy, gradients);
  const std::uint32_t hash = attune::hash_bits(gradients);
  const auto expect_same = [&] {
    EXPECT_TRUE(check::same_bits(run.y, expected.y));
    EXPECT_TRUE(check::same_bits(run.inferred, expected.inferred));
    if constexpr (!attune::detail::TakesIds<Layer>) {
      EXPECT_TRUE(check::same_bits(run.dx, expected.dx));
    }
  };
  const auto try_form = [&](const auto& parameters) {
    attune::set_zero(gradients);
    run(parameters, x, dy, gradients);
    expect_same();
    EXPECT_EQ(attune::hash_bits(gradients), hash);
  };
  // With gradients in PyTorch's layout.
  const auto try_transposed_gradients = [&](const auto& parameters) {
    attune::set_zero(transposed_gradients);
    run(parameters, x, dy, transposed_gradients);
    expect_same();
    copy_set(gradients, transposed_gradients);
    EXPECT_EQ(attune::hash_bits(gradients), hash);
  };
  try_transposed_gradients(own);
  try_transposed_gradients(transposed);
  try_form(all_transposed);
  try_form(references);
  try_form(in_place);
}

template <class Layer>
void expect_the_same_of_every_form() {
  typename Layer::Input x;
  attune::Rng rng(7);
  check::fill(x, rng);
  expect_the_same_of_every_form<Layer>(x);
}

constexpr attune::AttentionShape kAttention{.seq_len = 5, .d_model = 6, .num_heads = 2, .d_v = 4};
constexpr attune::EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 6, .num_heads = 3},
                                             .d_ff = 7};
using Blocks = attune::Repeat<2, attune::EncoderLayer<kEncoder>>;
using Model = attune::Sequential<attune::Linear<attune::LinearShape{5, 3, 6}>,
                                 attune::LearnedPositions<attune::PositionShape{5, 6}>, Blocks>;

static_assert(sizeof(Blocks::ParametersOf<TransposedReference, Reference>) == 2 * 16 * sizeof(void*));

}  // namespace

TEST(Weights, of_every_form_give_the_same_in_linear_layers) {
  expect_the_same_of_every_form<attune::Linear<attune::LinearShape{5, 3, 7}>>();
  expect_the_same_of_every_form<attune::Linear<attune::LinearShape{1, 33, 17, false}>>();
  expect_the_same_of_every_form<attune::Linear<attune::LinearShape{200, 4, 5}>>();
}

TEST(Weights, of_every_form_give_the_same_in_attention) {
  expect_the_same_of_every_form<attune::MultiHeadAttention<kAttention>>();
}

TEST(Weights, of_every_form_give_the_same_in_networks_and_norms) {
  constexpr attune::FeedForwardShape kNetwork{.rows = 5, .d_model = 6, .d_ff = 9};
  expect_the_same_of_every_form<attune::FeedForward<kNetwork>>();
  expect_the_same_of_every_form<attune::SwiGlu<kNetwork>>();
  expect_the_same_of_every_form<attune::LayerNorm<attune::NormShape{5, 6}>>();
  expect_the_same_of_every_form<attune::RmsNorm<attune::NormShape{5, 6}>>();
}

TEST(Weights, of_every_form_give_the_same_in_models) { expect_the_same_of_every_form<Model>(); }

TEST(Weights, tables_are_not_transposed) {
  using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 4, .d_model = 5}>;
  using Positions = attune::LearnedPositions<attune::PositionShape{3, 5}>;
  static_assert(std::is_same_v<decltype(Layer::ParametersOf<TransposedReference, Reference>::weight),
                               Reference<float, 4, 5>>);
  static_assert(
      std::is_same_v<decltype(Positions::ParametersOf<TransposedTensor>::weight), Tensor<float, 3, 5>>);
  expect_the_same_of_every_form<Layer>(Layer::Input{2, 0, 2});
  expect_the_same_of_every_form<Positions>();
}

namespace {

using Small = attune::Linear<attune::LinearShape{2, 3, 3}>;
const float weight_out_in[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
const float bias[3] = {0.5f, 1.5f, 2.5f};
constinit const Small::ParametersOf<TransposedReference, Reference> kInPlace{{weight_out_in}, {bias}};
// A static that is filled at run time may be a constant, too.
Small::Parameters filled;

}  // namespace

TEST(Weights, of_constants_may_have_any_form) {
  using Constant = attune::Frozen<Small, kInPlace>;
  using Own = attune::Frozen<Small, filled>;
  using Tuned = attune::BiasesAndNorms<Small, kInPlace>;
  copy_set(filled, kInPlace);
  Small::Input x;
  attune::Rng rng(1);
  check::fill(x, rng);
  Small::Output y, of_own, of_tuned;
  Constant::InferenceScratch constant_scratch;
  Constant::forward({}, x, y, constant_scratch);
  Own::InferenceScratch own_scratch;
  Own::forward({}, x, of_own, own_scratch);
  Tuned::Parameters trained;
  attune::initialize(trained, attune::XavierUniform{}, rng);
  static_assert(sizeof trained == 3 * sizeof(float));
  Tuned::InferenceScratch tuned_scratch;
  Tuned::forward(trained, x, of_tuned, tuned_scratch);
  EXPECT_TRUE(check::same_bits(y, of_own));
  EXPECT_TRUE(check::same_bits(y, of_tuned));
  EXPECT_EQ(trained.bias.values[2], 2.5f);

  Small::Input dx, expected;
  Constant::Tape tape;
  Constant::Scratch scratch;
  Constant::Parameters nothing;
  Constant::backward({}, x, tape, y, dx, nothing, scratch);
  Small::Tape whole_tape;
  Small::Scratch whole_scratch;
  Small::Parameters gradients{};
  Small::backward(filled, x, whole_tape, y, expected, gradients, whole_scratch);
  EXPECT_TRUE(check::same_bits(dx, expected));
}
