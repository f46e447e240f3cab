// An attention layer learns to find the token whose first feature is the largest, and to copy it to every row.
#include <attune.h>

constexpr attune::AttentionShape kShape{.seq_len = 8, .d_model = 4, .num_heads = 1};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 64>;
static_assert(Trainer::memory(attune::Feeding::kOneByOne).object() < 4096);  // bytes of RAM

attune::SelfTest self_test;
Trainer trainer;
attune::Rng rng(42);
Layer::Input tokens;
Layer::Output target;

void draw() {
  for (float& value : tokens.values) value = rng.uniform(-1.7f, 1.7f);
  int largest = 0;
  for (int i = 1; i < kShape.seq_len; ++i) {
    if (tokens(i, 0) > tokens(largest, 0)) largest = i;
  }
  for (int i = 0; i < kShape.seq_len; ++i) {
    for (int j = 0; j < kShape.d_model; ++j) target(i, j) = tokens(largest, j);
  }
}

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  Serial.println(attune::message(self_test.run()));
  trainer.initialize(attune::XavierUniform{}, rng);
}

void loop() {
  static int step = 0;
  for (int sequence = 0; sequence < 64; ++sequence) {
    draw();
    (void)trainer.accumulate(tokens, target);
  }
  const auto result = trainer.update({.learning_rate = 0.03f, .weight_decay = 0});
  if (!result.ok()) Serial.println(attune::message(result.status));
  if (step++ % 50 == 0) {
    Serial.print("thousandths of the loss: ");
    Serial.println(static_cast<long>(result.loss * 1000));
  }
}
