// The umbrella header, as a user includes it: one program that trains and then infers from constant
// parameters.
#include <attune/attune.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW>;

static_assert(Trainer::memory().total() <= 8 * 1024);
constinit Trainer trainer{};

}  // namespace

TEST(Attune, trains_and_infers_with_the_umbrella_header_alone) {
  attune::Rng rng(42);
  Layer::Input x;
  Layer::Output target, y;
  check::fill(x, rng);
  check::fill(target, rng);
  trainer.initialize(attune::XavierUniform{}, attune::Rng{42});
  const float first = trainer.step(x, target, {.learning_rate = 3e-3f}).loss;
  float last = first;
  for (int i = 0; i < 50; ++i) last = trainer.step(x, target, {.learning_rate = 3e-3f}).loss;
  EXPECT_LT(last, first);

  const Layer::Parameters parameters = trainer.parameters();
  Layer::InferenceScratch scratch;
  Layer::forward(parameters, x, y, scratch);
  Layer::Output dy;
  EXPECT_LT(attune::MeanSquaredError::forward(y, target, dy), last);
}
