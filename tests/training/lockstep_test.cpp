// On boards without packets Lockstep is BySequence: nothing is trained there.
#include <attune/training/lockstep.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/huber.hpp>
#include <attune/training/shared_buffers.hpp>

#include "attention_shapes.hpp"
#include "training/plan_check.hpp"

namespace {

using attune::NoClipping, attune::Sequential, attune::Status;

template <class Model, int batch, class Loss = attune::MeanSquaredError, class Masks = attune::NoMask,
          class Clipping = NoClipping>
void expect_same_training(const Masks& masks = {}, const Clipping& clipping = {}, const Loss& loss = {}) {
  if constexpr (check::kHasLanes) {
    check::expect_same_training<attune::Lockstep, Model, batch, Loss, check::AdamOf<Model>>(masks, clipping,
                                                                                            loss);
  }
}

template <attune::AttentionShape shape, class Scalar = float>
using Attention = attune::MultiHeadAttention<shape, Scalar>;
constexpr attune::AttentionShape kTiny{.seq_len = 8, .d_model = 4, .num_heads = 1};
template <int d_in, int d_out>
using Linear = attune::Linear<attune::LinearShape{.rows = 4, .d_in = d_in, .d_out = d_out}>;
using Tokens =
    attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 6, .padding = 2}>;
using Norm = attune::LayerNorm<attune::NormShape{4, 6}>;

}  // namespace

TEST(Lockstep, trains_more_rows_than_are_added_up_at_a_time_as_one_by_one) {
  if constexpr (check::kDepth >= check::kQuickHost) {
    expect_same_training<attune::Linear<attune::LinearShape{.rows = 200, .d_in = 3, .d_out = 2}>, 9>();
  }
}

TEST(Lockstep, takes_every_loss) {
  using Regression = Sequential<Linear<3, 5>, attune::Silu<4, 5>>;
  expect_same_training<Regression, 17, attune::SumSquaredError>();
  expect_same_training<Regression, 17, attune::Huber<attune::HuberOptions{.delta = 0.5}>>();
  // Classes of tokens, of which some are ignored.
  using attune::CrossEntropyOptions;
  expect_same_training<Regression, 19, attune::CrossEntropy<CrossEntropyOptions{.label_smoothing = 0.1}>>();
  using Weighted = attune::WeightedCrossEntropy<5>;
  expect_same_training<Regression, 19, Weighted>({}, NoClipping{}, Weighted{{{0.5f, 1, 4, 0, 2}}});
  if constexpr (check::kDepth >= check::kFullHost) {  // and of sequences
    using Classifier =
        Sequential<Linear<3, 6>, attune::Pooling<attune::PoolingShape{4, 6, attune::PoolingKind::kFirst}>,
                   attune::Linear<attune::LinearShape{1, 6, 5}>>;
    expect_same_training<Classifier, 19,
                         attune::CrossEntropy<CrossEntropyOptions{.reduction = attune::Reduction::kSum}>>();
  }
}

TEST(Lockstep, batch_may_have_any_size) {
  expect_same_training<Linear<3, 5>, 3>();
  expect_same_training<Linear<3, 5>, 32>();
}

TEST(Lockstep, masks_equal_single_sequences_in_double_and_with_every_option) {
  if constexpr (check::kDepth >= check::kQuickHost) {
    attune::KeyPaddingMask<8> keys;
    attune::QueryPaddingMask<8> queries;
    EXPECT_EQ(keys.set_length(5), Status::kOk);
    EXPECT_EQ(queries.set_length(6), Status::kOk);
    expect_same_training<Attention<kTiny, double>, 9>(keys && queries);  // two rows without a key
    attune::Tensor<float, 8, 8> bias;
    attune::Rng rng(3);
    check::fill(bias, rng);
    bias(1, 2) = -check::kInfinity<float>;
    bias(3, 4) = bias(3, 7) = check::kInfinity<float>;  // the second is hidden by its padding
    constexpr attune::AttentionShape kOptions =
        check::with_every_option({.seq_len = 8,
                                  .d_model = 4,
                                  .num_heads = 2,
                                  .d_k = 3,
                                  .d_v = 5,
                                  .d_out = 2,
                                  .bias = false,
                                  .scaling = attune::Scaling::kInverseFourthRootDkEach},
                                 {.left = 5});
    if constexpr (check::kDepth >= check::kFullHost) {
      expect_same_training<Attention<kOptions>, 17>(keys && attune::AdditiveMask(bias));
    }
  }
}

namespace {

constexpr int kBatch = 37;
template <class Model, class Loss = attune::MeanSquaredError>
struct Pair {
  template <class Plan>
  using TrainerOf = attune::Trainer<Model, Loss, attune::AdamW, kBatch, Plan>;
  using Lockstep = TrainerOf<attune::Lockstep>;
  Lockstep& lockstep = check::fresh<0, Lockstep>();
  TrainerOf<attune::BySequence>& streaming = check::fresh<1, TrainerOf<attune::BySequence>>();
  check::Batch<Lockstep> data{1};
  // One step of both, to the same bits; where it is refused, nothing has changed.
  template <class Mask = attune::NoMask>
  void expect_steps(Status status, const Mask& mask = {}, float learning_rate = 0.01f) {
    const std::uint32_t before = attune::hash_bits(lockstep.parameters());
    const auto a = lockstep.step(data.x, data.target, {.learning_rate = learning_rate}, NoClipping{}, mask);
    const auto b = streaming.step(data.x, data.target, {.learning_rate = learning_rate}, NoClipping{}, mask);
    EXPECT_EQ(a.status, status);
    EXPECT_EQ(b.status, status);
    EXPECT_TRUE(check::same_bits(lockstep.parameters(), streaming.parameters()));
    EXPECT_EQ(attune::hash_bits(lockstep.parameters()) == before, status != Status::kOk);
    if (status == Status::kOk) {
      EXPECT_EQ(a.loss, b.loss);
    }
  }
};

// Counts its calls in lanes, and for a sequence alone.
struct CountedLoss : attune::MeanSquaredError {
  static inline int in_lanes = 0;
  static inline int alone = 0;
  template <class Output, class Target, class Gradient>
  static auto sum(const Output& y, const Target& target, const Gradient& dy) {
    ++(std::is_same_v<typename Gradient::Scalar, float> ? alone : in_lanes);
    return attune::MeanSquaredError::sum(y, target, dy);
  }
};

}  // namespace

TEST(Lockstep, leaves_only_the_remainder_of_a_batch_for_one_by_one) {
  if constexpr (check::kHasLanes) {
    constexpr int kLanes = attune::kernels::kLanes<attune::kernels::Packet<float>>;
    Pair<Attention<kTiny>, CountedLoss> pair;
    CountedLoss::in_lanes = CountedLoss::alone = 0;
    (void)pair.lockstep.step(pair.data.x, pair.data.target, {});
    EXPECT_EQ(CountedLoss::in_lanes, kBatch / kLanes);
    EXPECT_EQ(CountedLoss::alone, kBatch % kLanes);
  }
}

TEST(Lockstep, padding_that_is_not_finite_is_hidden_as_one_by_one) {
  if constexpr (check::kHasLanes) {
    Pair<Sequential<Attention<kTiny>, attune::Pooling<attune::PoolingShape{8, 4}>,
                    attune::Linear<attune::LinearShape{1, 4, 2}>>>
        pair;
    attune::KeyPaddingMask<8> padding;
    EXPECT_EQ(padding.set_length(6), Status::kOk);
    pair.data.x(3 * 8 + 7, 1) = check::kNan<float>;  // of some sequences
    pair.data.x(20 * 8 + 6, 0) = check::kInfinity<float>;
    pair.expect_steps(Status::kOk, padding);
    pair.expect_steps(Status::kOk, padding);
    pair.data.x(5 * 8 + 2, 1) = check::kNan<float>;  // which is not hidden
    pair.expect_steps(Status::kNotFinite, padding);
    pair.data.x(5 * 8 + 2, 1) = 0;
    std::array<attune::KeyPaddingMask<8>, kBatch> of_each;
    for (int i = 0; i < kBatch; ++i) {
      EXPECT_EQ(of_each[static_cast<std::size_t>(i)].set_length(1 + i % 6), Status::kOk);
    }
    pair.expect_steps(Status::kOk, of_each);
  }
}

TEST(Lockstep, sequences_that_are_refused_in_the_middle_discard_the_batch_and_its_masks_of_dropout) {
  if constexpr (check::kHasLanes) {
    using Drop = attune::Dropout<attune::DropoutShape{.rows = 4, .d_model = 6, .probability = 0.4}>;
    Pair<Sequential<Tokens, Drop, Linear<6, 5>>, attune::CrossEntropy<>> pair;
    pair.expect_steps(Status::kOk);
    std::swap(pair.data.x[4 * 21], pair.data.x[4 * 22]);
    pair.data.x[4 * 21 + 1] = 9;
    pair.expect_steps(Status::kInvalidToken);
    pair.data.x[4 * 21 + 1] = 8;
    pair.data.target[4 * 30] = 5;
    pair.expect_steps(Status::kInvalidTarget);
    pair.data.target[4 * 30] = -100;
    pair.expect_steps(Status::kInvalidLearningRate, attune::NoMask{}, -1.0f);
    pair.expect_steps(Status::kOk);
    // A batch that is filled by half, and one that is resumed then.
    const auto some = [&](auto& trainer, int count) {
      for (int i = 0; i < count; ++i) {
        EXPECT_TRUE(trainer.accumulate(std::array{1, 2, 3, i % 5}, std::array{0, 1, 2, i % 5}).ok());
      }
    };
    some(pair.lockstep, 3);
    pair.expect_steps(Status::kOk);
    some(pair.lockstep, 20);
    EXPECT_EQ(pair.lockstep.resume(pair.streaming.state()), Status::kOk);
    pair.expect_steps(Status::kOk);
    some(pair.streaming, 20);
    some(pair.lockstep, 20);
    EXPECT_TRUE(pair.lockstep.update_incomplete({}).ok());
    EXPECT_TRUE(pair.streaming.update_incomplete({}).ok());
    pair.expect_steps(Status::kOk);
  }
}

namespace {

using Dropping = Sequential<Linear<3, 6>, attune::Dropout<attune::DropoutShape{4, 6, 0.4}>>;
attune::SharedBuffers<Dropping> buffers;

}  // namespace

TEST(Lockstep, takes_turns_in_shared_buffers) {
  if constexpr (check::kHasLanes) {
    using Shared = attune::Trainer<Dropping, attune::MeanSquaredError, attune::AdamW, kBatch,
                                   attune::InSharedBuffers<buffers, attune::Lockstep>>;
    static_assert(Shared::memory().object() == sizeof(Shared));
    static Shared first, second;
    for (Shared* trainer : {&first, &second}) trainer->initialize(attune::XavierUniform{}, attune::Rng{42});
    Pair<Dropping> pair;
    for (int step = 0; step < 2; ++step) {
      EXPECT_TRUE(first.step(pair.data.x, pair.data.target, {.learning_rate = 0.01f}).ok());
      EXPECT_TRUE(second.step(pair.data.x, pair.data.target, {.learning_rate = 0.5f}).ok());
      pair.expect_steps(Status::kOk);
    }
    EXPECT_TRUE(check::same_bits(first.parameters(), pair.lockstep.parameters()));
  }
}

namespace {

template <class Model, class Layer, class Table>
constexpr bool keeps_one_table() {
  using Executor = attune::Lockstep::BatchExecutor<Model>;
  if constexpr (!check::kHasLanes) {
    return std::is_same_v<Executor, attune::BySequence::BatchExecutor<Model>>;
  } else {
    constexpr attune::MemoryReport kMemory = Executor::memory();
    constexpr std::size_t kSets = sizeof(Table) + Executor::kSequences * sizeof(Layer);
    constexpr std::size_t kAlignment = sizeof(float) * Executor::kSequences;
    return kMemory.parameters >= kSets && kMemory.parameters < kSets + kAlignment &&
           kMemory.gradients == kMemory.parameters;
  }
}
static_assert(keeps_one_table<Sequential<Tokens, Norm>, Norm::Parameters, Tokens::Parameters>());

}  // namespace
