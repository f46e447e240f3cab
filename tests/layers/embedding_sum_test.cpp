// Sums of embeddings: values, gradients, ids in every form, refused ids, constants in flash, names.
#include <attune/layers/embedding_sum.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/exchange/pytorch_names.hpp>
#include <attune/execution/stream.hpp>
#include <attune/models/frozen.hpp>
#include <attune/training/check_gradients.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "layers/token_models.hpp"

namespace {

using namespace attune;

template <class Scalar>
using Words = Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 7, .d_model = 2}, Scalar>;
template <class Scalar>
using Types = Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 2, .d_model = 2}, Scalar>;
template <class Scalar>
using SumOf = EmbeddingSum<Words<Scalar>, Types<Scalar>>;
using Tables = SumOf<float>;
using Three = EmbeddingSum<Tables, Words<float>>;
// Words and types, then a small encoder.
template <class Scalar>
using Model =
    Sequential<SumOf<Scalar>, check::TokenModel<LearnedPositions<PositionShape{4, 4}, Scalar>, Scalar>>;
using Small = Model<float>;

constexpr int kIds[2][4] = {{6, 0, 6, 3}, {0, 1, 1, 0}};

Small::Parameters constants;

}  // namespace

TEST(EmbeddingSum, has_right_gradients) {
  const GradientCheck alone = check_gradients<SumOf<double>>();
  EXPECT_TRUE(alone.ok()) << alone.tensor;
  const GradientCheck check = check_gradients<Model<double>>();
  EXPECT_TRUE(check.ok()) << check.tensor;
}

TEST(EmbeddingSum, an_id_outside_its_table_is_refused_and_nothing_written) {
  static Tables::Parameters parameters{}, gradients{};
  Tables::Scratch scratch;
  Tables::Tape tape;
  for (const int place : {0, 3, 4, 7}) {
    for (const int bad : {-1, 7, 1 << 30}) {
      int ids[8] = {1, 2, 3, 4, 1, 0, 1, 0};
      ids[place] = bad;
      Tables::Output y{{1, 2, 3, 4, 5, 6, 7, 8}};
      EXPECT_EQ(Tables::forward(parameters, ids, y, scratch), Status::kInvalidToken);
      EXPECT_TRUE(check::same_bits(y, Tables::Output{{1, 2, 3, 4, 5, 6, 7, 8}}));
      Tables::backward(parameters, ids, tape, y, NoGradient{}, gradients, scratch);
      EXPECT_TRUE(check::same_bits(gradients, Tables::Parameters{}));
    }
  }
  const int swapped[2][4] = {{0, 1, 1, 0}, {6, 0, 6, 3}};  // types, then words
  Tables::Output y;
  EXPECT_EQ(Tables::forward(parameters, swapped, y, scratch), Status::kInvalidToken);
}

TEST(EmbeddingSum, can_be_constant_next_to_a_trained_head) {
  Rng rng(5);
  check::fill_set(constants, rng);
  static Trainer<BiasesAndNorms<Small, constants>, CrossEntropy<>> trainer;
  trainer.initialize(XavierUniform{}, Rng{6});
  EXPECT_TRUE(trainer.step(kIds, 1, {.learning_rate = 1e-2f}).ok());
}

TEST(EmbeddingSum, reads_no_ids_beyond_a_length) {
  using Pooled = Sequential<Tables, Pooling<PoolingShape{4, 2}>>;
  static Pooled::Parameters parameters;
  static Pooled::InferenceScratch scratch;
  Rng rng(8);
  check::fill_set(parameters, rng);
  SequenceLength<4> length;
  EXPECT_EQ(length.set_length(2), Status::kOk);
  Pooled::Output y, padded;
  const int ids[2][4] = {{6, 0, -5, 99}, {0, 1, 7, 8}};
  EXPECT_EQ(infer<Pooled>(parameters, kIds, y, scratch, length), Status::kOk);
  EXPECT_EQ(infer<Pooled>(parameters, ids, padded, scratch, length), Status::kOk);
  EXPECT_TRUE(check::same_bits(padded, y));
}

TEST(EmbeddingSum, streams) {
  using Streamed = Sequential<Tables, LearnedPositions<PositionShape{4, 2}>>;
  static Streamed::Parameters parameters;
  static Streamed::InferenceScratch scratch;
  static KeyValueCache<Streamed, CacheShape{.capacity = 4}> cache;
  static decltype(cache)::Scratch<2> step_scratch;
  Rng rng(7);
  check::fill_set(parameters, rng);
  Streamed::Output y;
  EXPECT_EQ(infer<Streamed>(parameters, kIds, y, scratch), Status::kOk);
  for (int first = 0; first < 4; first += 2) {
    const int ids[2][2] = {{kIds[0][first], kIds[0][first + 1]}, {kIds[1][first], kIds[1][first + 1]}};
    Tensor<float, 2, 2> rows;
    EXPECT_EQ(step(parameters, ids, rows, cache, step_scratch), Status::kOk);
    for (int j = 0; j < 2; ++j) {
      EXPECT_EQ(rows(0, j), y(first, j));
      EXPECT_EQ(rows(1, j), y(first + 1, j));
    }
  }
}

TEST(EmbeddingSum, has_a_name_for_each_table) {
  check::expect_tensors<PyTorchModule<Sequential<Three>, "word", "token_type", "language">>(
      "language.weight[7,2] token_type.weight[2,2] word.weight[7,2]");
}
