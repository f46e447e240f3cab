// Sequences in lockstep that are shorter than their model: the bits of padding and a mask, one by one.
// Pooling first: in whatever order headers come, they know lanes.
#include <attune/layers/pooling.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/softmax.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

using attune::NoClipping, attune::Sequential;
using check::Behind, check::of_length;

constexpr int kTokens = 7, kWidth = 4, kClasses = 3;
constexpr int kLanes = attune::kernels::kLanes<attune::kernels::Packet<float>>;
constexpr int kBatch = 2 * kLanes + 3;
using Padding = attune::KeyPaddingMask<kTokens>;
using Length = attune::SequenceLength<kTokens>;

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2, .dropout = 0.25}, .d_ff = 5}>;
// masks<Mask>(): of all sequences, or of each.
template <class Model>
struct Both {
  template <class Plan>
  using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch, Plan>;
  Trainer<attune::Lockstep> lockstep;
  Trainer<attune::BySequence> padded;

  void expect_the_bits_of_padding(const auto& length_of, const auto& masks, std::uint64_t seed) {
    typename Trainer<attune::BySequence>::BatchInput clean, dirty;
    typename Trainer<attune::BySequence>::BatchTarget target;
    attune::Rng one(seed), other(seed);
    const auto all = check::sequences<kTokens>(length_of);
    all.fill(clean, one, Behind::kPadding, kClasses);
    all.fill(dirty, other, Behind::kGarbage, kClasses);
    all.template fill_classes<Model::Output::rows>(target, one, kClasses);
    const auto expected = padded.step(clean, target, {.learning_rate = 0.01f}, NoClipping{},
                                      masks.template operator()<Padding>());
    const auto step = lockstep.step(dirty, target, {.learning_rate = 0.01f}, NoClipping{},
                                    masks.template operator()<Length>());
    EXPECT_TRUE(expected.ok() && step.ok());
    EXPECT_TRUE(check::same_bits(step.loss, expected.loss));
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), padded.parameters()));
  }
  void expect_every_length() {
    padded.initialize(attune::XavierUniform{}, attune::Rng{42});
    lockstep.initialize(attune::XavierUniform{}, attune::Rng{42});
    for (int length = 1; length <= kTokens; ++length) {
      expect_the_bits_of_padding(
          [length](int) { return length; },
          [length]<class Mask>() { return attune::CausalMask{} && of_length<Mask>(length); }, 7);
      // Two that differ, as many as go together, and others that differ.
      const auto length_of = [length](int sequence) {
        return sequence >= 2 && sequence < 2 + kLanes ? length : 1 + (sequence * 5 + length) % kTokens;
      };
      expect_the_bits_of_padding(
          length_of,
          [&]<class Mask>() {
            std::array<Mask, kBatch> masks;
            for (int i = 0; i < kBatch; ++i)
              masks[static_cast<std::size_t>(i)] = of_length<Mask>(length_of(i));
            return masks;
          },
          8);
    }
  }
};

template <class Model>
void expect_the_bits_of_padding() {
  static_assert(attune::detail::TakesLength<Model>);
  static Both<Model> both;
  both.expect_every_length();
}

// Layers in lanes and out of them, weights that are computed once more, parts that are constants.
constexpr attune::AttentionShape kRecomputing{.seq_len = kTokens,
                                              .d_model = kWidth,
                                              .num_heads = 2,
                                              .num_kv_heads = 1,
                                              .rotary_dim = 2,
                                              .dropout = 0.25,
                                              .keep_weights = false,
                                              .softcap = 5,
                                              .query_key_norm = attune::QueryKeyNorm::kRootMeanSquare,
                                              .score_scale = attune::ScoreScale::kClampedExponential};
using Attention = attune::MultiHeadAttention<kRecomputing>;
using Constant = attune::Linear<attune::LinearShape{kTokens, kWidth, kWidth}>;
constexpr Constant::Parameters kConstant = [] {
  Constant::Parameters parameters{};
  for (int i = 0; i < kWidth; ++i) parameters.weight(i, i) = 1.5f;
  return parameters;
}();
using Mixed = Sequential<
    attune::Linear<attune::LinearShape{kTokens, 5, kWidth}>, attune::Frozen<Constant, kConstant>,
    attune::EncoderLayerOf<Attention, attune::SwiGlu<attune::FeedForwardShape{kTokens, kWidth, 6}>,
                           attune::RmsNorm<attune::NormShape{kTokens, kWidth}>,
                           attune::BranchOptions{.norm = attune::NormPlacement::kBefore, .dropout = 0.2}>,
    attune::Residual<attune::Softmax<kTokens, kWidth>>,
    attune::Adapted<Constant, kConstant, attune::LowRank{2, attune::Role::kProjections}>,
    attune::Repeat<2, attune::Checkpointed<Encoder>>, attune::Residual<attune::Gelu<kTokens, kWidth>>,
    attune::Pooling<attune::PoolingShape{kTokens, kWidth, attune::PoolingKind::kMax}>,
    attune::Linear<attune::LinearShape{1, kWidth, kClasses}>>;

}  // namespace

TEST(LockstepLength, has_the_bits_of_padding_with_every_kind_of_layer_and_pools) {
  if constexpr (kLanes > 1 && check::kDepth >= check::kFullHost) expect_the_bits_of_padding<Mixed>();
}

// Whether the lanes' own pass, with a mask of three tokens and NaN behind them, has an answer.
template <class Mask, class Plan = attune::Lockstep>
bool is_answered_in_lanes() {
  using Model = attune::MultiHeadAttention<attune::AttentionShape{kTokens, kWidth, 1}>;
  using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, kLanes, Plan>;
  static typename Plan::template BatchExecutor<Model> executor;
  static Model::Parameters parameters, gradients;
  static Model::Tape tape;
  static typename Trainer::BatchInput x;
  static typename Trainer::BatchTarget target;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  attune::set_zero(gradients);
  check::sequences<kTokens>([](int) { return 3; }).fill(x, rng, Behind::kGarbage, kClasses);
  const Mask mask = of_length<Mask>(3);
  attune::detail::BatchSums<attune::MeanSquaredError, float> sums{};
  executor.broadcast(parameters);
  return executor.accumulate(
      attune::view(std::as_const(x)).template rows_at<kTokens>(0),
      [&](int s) { return attune::view(std::as_const(target)).template rows_at<kTokens>(s * kTokens); }, tape,
      mask, attune::MeanSquaredError{}, gradients, sums);
}

TEST(LockstepLength, tokens_beyond_it_are_not_computed) {
  if constexpr (kLanes > 1) {
    EXPECT_TRUE(is_answered_in_lanes<Length>());
    EXPECT_FALSE(is_answered_in_lanes<Padding>());  // zeros times NaN: one by one has the answer
  }
}
