// Trains a little and answers whether the loss fell, and models in files agree.
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW>;

static Trainer trainer;

#if !defined(CONSUMER_FUSED)
#define CONSUMER_FUSED 0
#endif
static_assert(ATTUNE_FUSED == CONSUMER_FUSED, "the arithmetic policy did not arrive");

bool models_agree();    // model.cpp
bool keyword_learns();  // keyword_user.cpp

int main() {
  attune::Rng rng(1);
  Layer::Input x;
  Layer::Output target;
  for (float& value : x.values) value = rng.normal();
  for (float& value : target.values) value = rng.normal();
  trainer.initialize(attune::XavierUniform{}, rng);
  const float first = trainer.step(x, target, {.learning_rate = 0.01f}).loss;
  float last = first;
  for (int step = 0; step < 20; ++step) last = trainer.step(x, target, {.learning_rate = 0.01f}).loss;
  return last < first && models_agree() && keyword_learns() ? 0 : 1;
}
