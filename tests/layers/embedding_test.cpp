#include <attune/core/gradients.hpp>
#include <attune/core/initialize.hpp>
#include <attune/layers/embedding.hpp>

#include "check.hpp"

namespace {

using attune::EmbeddingShape;
using attune::Status;
using Layer = attune::Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 2}>;
using Padded = attune::Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 2, .padding = 4}>;

constexpr Layer::Parameters kTable{.weight = {{0, 1, 10, 11, 20, 21, 30, 31, 40, 41}}};
constexpr Layer::Output kGradient{{1, 2, 3, 4, 5, 6}};

}  // namespace

TEST(Embedding, adds_gradients_to_the_rows_that_were_used) {
  Layer::Parameters gradients{};
  Layer::Tape tape;
  Layer::Scratch scratch;
  const int ids[] = {3, 0, 3};
  Layer::backward(kTable, ids, tape, kGradient, attune::NoGradient{}, gradients, scratch);
  Layer::backward(kTable, ids, tape, kGradient, attune::NoGradient{}, gradients, scratch);
  const Layer::Parameters expected{.weight = {{6, 8, 0, 0, 0, 0, 12, 16, 0, 0}}};
  EXPECT_TRUE(check::same_bits(gradients, expected));
}

TEST(Embedding, gradients_of_sequences_may_be_added_up_apart) {
  Layer::Parameters in_place{}, apart{}, sum{};
  Layer::Tape tape;
  Layer::Scratch scratch;
  Layer::Output dy;
  attune::Rng rng(3);
  const int ids[] = {3, 0, 3};
  for (int sequence = 0; sequence < 9; ++sequence) {
    check::fill(dy, rng);
    attune::set_zero(apart);
    Layer::backward(kTable, ids, tape, dy, attune::NoGradient{}, in_place, scratch);
    Layer::backward(kTable, ids, tape, dy, attune::NoGradient{}, apart, scratch);
    for (int i = 0; i < sum.weight.size; ++i) sum.weight.values[i] += apart.weight.values[i];
  }
  EXPECT_TRUE(check::same_bits(in_place, sum));
}

TEST(Embedding, an_id_outside_the_vocabulary_is_refused_and_nothing_written) {
  for (const int bad : {-1, 5, 1 << 30, -(1 << 30)}) {
    const int ids[] = {0, 1, bad};
    Layer::Output y = kGradient;
    Layer::Parameters gradients{};
    Layer::Tape tape;
    Layer::Scratch scratch;
    EXPECT_EQ(Layer::forward(kTable, ids, y), Status::kInvalidToken);
    EXPECT_TRUE(check::same_bits(y, kGradient));
    Layer::backward(kTable, ids, tape, kGradient, attune::NoGradient{}, gradients, scratch);
    for (const float value : gradients.weight.values) EXPECT_EQ(value, 0.0f);
  }
}

TEST(Embedding, the_padding_id_learns_nothing_and_starts_at_zero) {
  Padded::Parameters parameters, gradients{};
  Padded::Tape tape;
  Padded::Scratch scratch;
  Padded::backward(parameters, {{4, 1, 4}}, tape, kGradient, attune::NoGradient{}, gradients, scratch);
  const Padded::Parameters expected{.weight = {{0, 0, 3, 4, 0, 0, 0, 0, 0, 0}}};
  EXPECT_TRUE(check::same_bits(gradients, expected));
  attune::Rng rng(1);
  attune::initialize(parameters, attune::Normal{}, rng);
  for (int id = 0; id < 5; ++id) {
    for (int j = 0; j < 2; ++j) EXPECT_EQ(parameters.weight(id, j) == 0.0f, id == 4);
  }
}
