// Product: derivatives, gates of one row, padding, streams, names and tapes. Values: vectors of PyTorch;
// plans: tests/zoo.
#include <attune/models/product.hpp>

#include <limits>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/reshape.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "layer_suite.hpp"
#include "layers/every_plan.hpp"
#include "problem.hpp"

namespace {

using namespace attune;
using check::in_models::kTokens, check::in_models::kWidth;

template <class Scalar, int rows = kTokens>
using Dense = Linear<LinearShape{rows, kWidth, kWidth}, Scalar>;
template <class Scalar>
using Norm = LayerNorm<NormShape{kTokens, kWidth}, Scalar>;
template <class Scalar>
using Attention =
    MultiHeadAttention<AttentionShape{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, Scalar>;
/// Attention whose output is gated by its input.
template <class Scalar>
using GatedAttention =
    Product<Attention<Scalar>, Sequential<Dense<Scalar>, Sigmoid<kTokens, kWidth, Scalar>>>;
/// Squeeze and excitation.
template <class Scalar>
using Excited = Product<
    Identity<kTokens, kWidth, Scalar>,
    Sequential<Pooling<PoolingShape{kTokens, kWidth}, Scalar>, Linear<LinearShape{1, kWidth, 2}, Scalar>,
               Tanh<1, 2, Scalar>, Linear<LinearShape{1, 2, kWidth}, Scalar>, Sigmoid<1, kWidth, Scalar>>>;
/// The same of a layer's output.
template <class Scalar>
using ExcitedDense = Product<Dense<Scalar>, Sequential<Pooling<PoolingShape{kTokens, kWidth}, Scalar>,
                                                       Dense<Scalar, 1>, Sigmoid<1, kWidth, Scalar>>>;
/// gMLP's spatial gating unit, with a Linear over tokens.
template <class Scalar>
using SpatialGate = Product<
    Sequential<Dense<Scalar>, Gelu<kTokens, kWidth, Scalar>>,
    Sequential<Dense<Scalar>, Gelu<kTokens, kWidth, Scalar>, Norm<Scalar>, Transpose<kTokens, kWidth, Scalar>,
               Linear<LinearShape{kWidth, kTokens, kTokens}, Scalar>, Transpose<kWidth, kTokens, Scalar>>>;
/// x ∘ g(x) token by token.
template <class Scalar>
using OwnGate =
    Product<Identity<kTokens, kWidth, Scalar>, Sequential<Dense<Scalar>, Sigmoid<kTokens, kWidth, Scalar>>>;

struct OfExcited {
  template <class Scalar>
  using Own = Excited<Scalar>;
  static constexpr int kScalars = 2 * (2 * kWidth) + 2 + kWidth, kVectors = 2 + kWidth,
                       kLowRank = 2 * 2 * (kWidth + 2);
};
struct OfGatedAttention {
  template <class Scalar>
  using Own = GatedAttention<Scalar>;
  static constexpr int kScalars = 5 * (kWidth * kWidth + kWidth), kVectors = 4 * kWidth,
                       kLowRank = 2 * 2 * kWidth;
};

SequenceLength<kTokens> of_length(int tokens) {
  SequenceLength<kTokens> length;
  (void)length.set_length(tokens);
  return length;
}

}  // namespace

#define ATTUNE_TEST_PRODUCT(prefix, Of)                                                       \
  ATTUNE_TEST_IN_MODEL(Product, prefix##trains, trains, Of)                                   \
  ATTUNE_TEST_IN_MODEL(Product, prefix##sits_in_flash, sits_in_flash, Of)                     \
  ATTUNE_TEST_IN_MODEL(Product, prefix##takes_lora_beside_it, takes_lora_beside_it, Of)       \
  ATTUNE_TEST_IN_MODEL(Product, prefix##trains_biases_and_norms, trains_biases_and_norms, Of) \
  ATTUNE_TEST_IN_MODEL(Product, prefix##has_the_gradients_in_models,                          \
                       has_the_gradients_of_finite_differences, Of)                           \
  ATTUNE_TEST_IN_MODEL(Product, prefix##has_weights_of_8_and_16_bits, has_weights_of_8_and_16_bits, Of)
ATTUNE_TEST_PRODUCT(excited_, OfExcited)
ATTUNE_TEST_PRODUCT(gated_attention_, OfGatedAttention)

TEST(Product, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<GatedAttention<double>>(-1, 1, CausalMask{});
  check::check_layer_gradients<GatedAttention<double>>(-1, 1, of_length(3));
  check::check_layer_gradients<Excited<double>>(-1, 1);
  check::check_layer_gradients<Excited<double>>(-1, 1, of_length(3));
  check::check_layer_gradients<ExcitedDense<double>>(-1, 1, of_length(4));
  check::check_layer_gradients<SpatialGate<double>>(-1, 1);
  check::check_layer_gradients<OwnGate<double>>(-1, 1);
  check::check_layer_gradients<Residual<Sequential<Norm<double>, Excited<double>>>>(-1, 1);
}

TEST(Product, multiplies_the_outputs) {
  check::Problem<ExcitedDense<float>> a(3);
  a.infer();
  check::Problem<ExcitedDense<float>::Layer> layer(3);
  check::Problem<ExcitedDense<float>::Gate> gate(3);
  layer.parameters = a.parameters.layer<0>(), gate.parameters = a.parameters.layer<1>();
  layer.x = a.x, gate.x = a.x;
  layer.infer(), gate.infer();
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kWidth; ++j) {
      EXPECT_EQ(float(a.y(i, j)), float(layer.y(i, j)) * float(gate.y(0, j)));
    }
  }
  const auto inferred = a.y;
  a.forward();
  EXPECT_TRUE(check::same_bits(a.y, inferred));
}

TEST(Product, of_its_input_keeps_no_copy_of_it) {
  using Small = Excited<float>;
  static_assert(sizeof(Small::Tape) == sizeof(Small::Gate::Tape) + kWidth * sizeof(float));
  static_assert(detail::ReadsInput<Small, Small::Parameters>);
}

TEST(Product, draws_dropout_for_each_factor) {
  using Drops = Dropout<DropoutShape{.rows = 8, .d_model = 8, .probability = 0.5}>;
  check::Problem<Product<Drops, Drops>> a(1);
  Rng rng(2);
  draw_seeds(a.tape, rng);
  for (int i = 0; i < a.x.size; ++i) a.x.values[i] = 1;
  a.forward();
  int kept = 0;
  for (int i = 0; i < a.y.size; ++i) kept += a.y.values[i] != 0;
  EXPECT_GT(kept, 6);  // of 64: a quarter, or half if both had one mask
  EXPECT_LT(kept, 26);
  a.dy = a.x;
  a.backward();
  for (int i = 0; i < a.y.size; ++i) EXPECT_EQ(a.dx.values[i], 2 * a.y.values[i]);
}

TEST(Product, has_the_same_bits_with_dropout_in_every_plan) {
  using Drops = Dropout<DropoutShape{.rows = kTokens, .d_model = kWidth, .probability = 0.5}>;
  check::expect_same_bits_in_every_plan<
      Product<Sequential<Dense<float>, Drops>, Sequential<Dense<float>, Drops>>>();
}

TEST(Product, reads_no_padding) {
  const KeyPaddingMask<kTokens> mask = [] {
    KeyPaddingMask<kTokens> hides_the_second;
    hides_the_second.set_valid({true, false, true, true, true});
    return hides_the_second;
  }();
  const auto run = [&](float padding) {
    static check::Problem<Excited<float>> a(3);
    a = check::Problem<Excited<float>>(3);
    for (int j = 0; j < kWidth; ++j) a.x(1, j) = padding, a.dy(1, j) = 0;
    a.forward(mask);
    a.backward(mask);
    return a;
  };
  const auto zero = run(0), nan = run(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(check::same_bits(zero.gradients, nan.gradients));
  EXPECT_TRUE(check::same_bits(zero.dx, nan.dx));
}

TEST(Product, streams_with_the_bits_of_a_batch) {
  using Model = Repeat<2, Residual<Sequential<Product<Attention<float>, OwnGate<float>>, OwnGate<float>>>>;
  static check::Problem<Model> a(3);
  a.infer(CausalMask{});
  using Cache = KeyValueCache<Model, CacheShape{.capacity = kTokens}>;
  static Cache cache;
  static Cache::Scratch<> scratch;
  for (int token = 0; token < kTokens; ++token) {
    Tensor<float, 1, kWidth> x, y;
    for (int j = 0; j < kWidth; ++j) x(0, j) = a.x(token, j);
    EXPECT_EQ(step(a.parameters, x, y, cache, scratch), Status::kOk);
    for (int j = 0; j < kWidth; ++j) EXPECT_TRUE(check::same_bits(float(y(0, j)), float(a.y(token, j))));
  }
}

TEST(Product, packs_the_tapes_of_its_factors) {
  using Packed = QuantizedTape<GatedAttention<float>>;
  static_assert(sizeof(Packed::Tape) < sizeof(GatedAttention<float>::Tape));
}
