// One thread senses and infers once a millisecond, another trains in the remaining time: zephyr.cpp. Every
// second a line reports how well the model reproduces the signal.
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include <attune/training/self_test.hpp>

#include "application.hpp"

void start_threads();

namespace {
attune::SelfTest self_test;
int periods = 0;
float sensed[application::kShape.d_model];
float error = 0;
}  // namespace

// Four triangles of 8 periods; a sensor, in a product.
void application::read_sensor(float* channels) {
  for (int i = 0; i < kShape.d_model; ++i) {
    const int phase = (periods + 2 * i) % 8;
    channels[i] = sensed[i] = static_cast<float>(phase < 4 ? phase - 2 : 6 - phase) / 2.0f;
  }
}
void application::actuate(const Layer::Output& output) {
  const float* newest = &output.values[(kShape.seq_len - 1) * kShape.d_model];
  for (int i = 0; i < kShape.d_model; ++i) error += (newest[i] - sensed[i]) * (newest[i] - sensed[i]);
  if (++periods % 1000 == 0) {
    printk("thousandths of the error in a second: %d\n", static_cast<int>(1000 * error));
    error = 0;
  }
}

int main() {
  printk("self-test: %s\n", attune::message(self_test.run()));
  start_threads();
  return 0;
}
