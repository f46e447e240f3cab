// ports/rtos/freertos.cpp on the kernel: one task senses and infers once a millisecond, the other trains in
// the remaining time. After two seconds it reports, and ends with 0 if control has become better and the
// stacks were large enough.
#include <FreeRTOS.h>
#include <task.h>

#include <attune/training/self_test.hpp>

#include "application.hpp"
#include "console.hpp"
#include "port.hpp"

void start_tasks();

namespace {

constexpr int kPeriods = 2000, kMeasured = 16;
attune::SelfTest self_test;
int periods = 0;
float sensed[application::kShape.d_model];
float error = 0, first_error = 0;

[[noreturn]] void report() {
  const bool is_better = error < 0.1f * first_error;
  port::print("trained windows: ", static_cast<std::uint32_t>(application::trainer.state().steps),
              ", error of control: ", port::fixed(first_error, 3), " at first, ", port::fixed(error, 6),
              " at last\n");
  for (const char* name : {"train", "control"}) {
    port::print("free words of the stack of ", name, ": ",
                static_cast<std::uint32_t>(uxTaskGetStackHighWaterMark(xTaskGetHandle(name))), '\n');
  }
  port::exit(is_better ? 0 : 1);
}

}  // namespace

// Four triangles of 8 periods.
void application::read_sensor(float* channels) {
  for (int i = 0; i < kShape.d_model; ++i) {
    const int phase = (periods + 2 * i) % 8;
    channels[i] = sensed[i] = static_cast<float>(phase < 4 ? phase - 2 : 6 - phase) / 2.0f;
  }
}
// The squared error of the newest sample, summed over a few periods.
void application::actuate(const Layer::Output& output) {
  const float* newest = &output.values[(kShape.seq_len - 1) * kShape.d_model];
  if (periods % kMeasured == 0) error = 0;
  for (int i = 0; i < kShape.d_model; ++i) error += (newest[i] - sensed[i]) * (newest[i] - sensed[i]);
  if (++periods == kMeasured) first_error = error;
  if (periods == kPeriods) report();
}

extern "C" void vApplicationStackOverflowHook(TaskHandle_t, char* name) {
  port::print("the stack of ", name, " is too small\n");
  port::exit(2);
}
extern "C" void assertion_failed(const char* file, int line) {
  port::print("configASSERT at ", file, ":", line, '\n');
  port::exit(3);
}

int main() {
  port::print("self-test: ", attune::message(self_test.run()), '\n');
  start_tasks();
  vTaskStartScheduler();
}
