// An attention layer learns in a task of low priority to copy the token whose first feature is the largest to
// every row.
#include <cstdio>

#include <freertos/FreeRTOS.h>
#include <freertos/task.h>

#include <attune/attune.hpp>

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 8, .d_model = 4, .num_heads = 1};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 64>;

attune::SelfTest self_test;
Trainer trainer;
attune::Rng rng(42);
Layer::Input tokens;
Layer::Output target;

// ESP-IDF counts stacks in bytes. printf takes most of it; the line below tells how much is left.
StackType_t stack[4096 / sizeof(StackType_t)];
StaticTask_t block;

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

void train(void*) {
  std::printf("self-test: %s\n", attune::message(self_test.run()));
  trainer.initialize(attune::XavierUniform{}, rng);
  for (int step = 0;; ++step) {
    for (int sequence = 0; sequence < 64; ++sequence) {
      draw();
      (void)trainer.accumulate(tokens, target);
    }
    const auto result = trainer.update({.learning_rate = 0.03f, .weight_decay = 0});
    if (step % 50 == 0) {
      std::printf("step %d: %s, loss %f, %u of the stack never used\n", step, attune::message(result.status),
                  static_cast<double>(result.loss),
                  static_cast<unsigned>(uxTaskGetStackHighWaterMark(nullptr)));
    }
    vTaskDelay(1);  // the idle task feeds the watchdog
  }
}

}  // namespace

extern "C" void app_main() {
  xTaskCreateStatic(train, "train", sizeof stack / sizeof *stack, nullptr, tskIDLE_PRIORITY + 1, stack,
                    &block);
}
