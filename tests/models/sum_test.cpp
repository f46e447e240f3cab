// Sum: derivatives, streams and tapes. Values: vectors of PyTorch; plans: tests/zoo.
#include <attune/models/sum.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/execution/stream.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 5, kWidth = 4;
template <class Scalar, int tokens = kTokens>
using Attention =
    MultiHeadAttention<AttentionShape{.seq_len = tokens, .d_model = kWidth, .num_heads = 2}, Scalar>;
template <class Scalar>
using Network = FeedForward<FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 6}, Scalar>;
template <class Scalar>
using Norm = LayerNorm<NormShape{kTokens, kWidth}, Scalar>;
/// GPT-J's block, and GPT-NeoX's.
template <class Scalar>
using OneNorm = Residual<Sequential<Norm<Scalar>, Sum<Attention<Scalar>, Network<Scalar>>>>;
template <class Scalar>
using TwoNorms =
    Residual<Sum<Sequential<Norm<Scalar>, Attention<Scalar>>, Sequential<Norm<Scalar>, Network<Scalar>>>>;

}  // namespace

TEST(Sum, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Sum<Attention<double>, Network<double>>>(-1, 1);
  check::check_layer_gradients<OneNorm<double>>(-1, 1);
  check::check_layer_gradients<TwoNorms<double>>(-1, 1, CausalMask{});
  SequenceLength<kTokens> length;
  (void)length.set_length(3);
  check::check_layer_gradients<TwoNorms<double>>(-1, 1, length);
}

TEST(Sum, streams_with_the_bits_of_a_batch) {
  using Model = Repeat<2, TwoNorms<float>>;
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

TEST(Sum, packs_the_tapes_of_its_terms) {
  using Packed = QuantizedTape<TwoNorms<float>>;
  static_assert(sizeof(Packed::Tape) < sizeof(TwoNorms<float>::Tape));
}
