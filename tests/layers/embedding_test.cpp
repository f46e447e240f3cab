#include <attune/core/initialize.hpp>
#include <attune/layers/embedding.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using attune::EmbeddingShape;
using attune::Status;
using Layer = attune::Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 2}>;
using Padded = attune::Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 2, .padding = 4}>;

constexpr Layer::Parameters kTable{.weight = {{0, 1, 10, 11, 20, 21, 30, 31, 40, 41}}};
constexpr Layer::Output kGradient{{1, 2, 3, 4, 5, 6}};

}  // namespace

TEST(Embedding, looks_up_the_row_of_every_token) {
  Layer::Output y;
  EXPECT_EQ(Layer::forward(kTable, {{3, 0, 3}}, y), Status::kOk);
  const Layer::Output expected{{30, 31, 0, 1, 30, 31}};
  EXPECT_TRUE(check::same_bits(y, expected));
}

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

TEST(Embedding, gradient_is_the_derivative_of_forward) {
  using Double = attune::Embedding<EmbeddingShape{.seq_len = 4, .vocabulary = 3, .d_model = 5}, double>;
  attune::Rng rng(2);
  Double::Parameters parameters, gradients{};
  Double::Output y, dy;
  Double::Tape tape;
  Double::Scratch scratch;
  check::fill_set(parameters, rng);
  check::fill(dy, rng);
  const int ids[] = {2, 0, 2, 2};
  const auto loss = [&] {
    EXPECT_EQ(Double::forward(parameters, ids, y), Status::kOk);
    return check::dot(y, dy);
  };
  Double::backward(parameters, ids, tape, dy, attune::NoGradient{}, gradients, scratch);
  EXPECT_GT(check::expect_set_gradients(loss, parameters, gradients), 0.1);
}
