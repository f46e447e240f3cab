// ports/rtos/freertos_crew.cpp on the kernel: two tasks train, and a trainer on one core takes the same
// steps. Ends with 0 if both have the same states.
#include <FreeRTOS.h>
#include <task.h>

#include <cstring>

#include "console.hpp"
#include "crew_application.hpp"
#include "port.hpp"

void start_training();
TaskHandle_t second_member();

namespace {

constexpr std::uint32_t kSteps = 300;
crew_application::OnOneCore one_core;
crew_application::OnOneCore::BatchInput inputs;
attune::Rng rng(2);
TickType_t began;

}  // namespace

// Random windows that are to be reproduced.
void crew_application::read_batch(OnOneCore::BatchInput& batch_inputs,
                                  OnOneCore::BatchTarget& batch_targets) {
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  batch_inputs = batch_targets = inputs;
}
void crew_application::end_step(const OnOneCore::State& state, const OnOneCore::Result& result) {
  const auto alone = one_core.step(inputs, inputs, kOptions);
  const bool same = result.ok() && alone.ok() && std::memcmp(&state, &one_core.state(), sizeof state) == 0;
  if (same && state.steps < kSteps) return;
  port::print(same ? "same bits" : "DIFFERENT bits", " after ", static_cast<std::uint32_t>(state.steps),
              " steps in ", static_cast<std::uint32_t>(xTaskGetTickCount() - began), " ms, loss ",
              port::fixed(result.loss, 6), '\n');
  for (const TaskHandle_t task : {xTaskGetHandle("train"), second_member()}) {
    port::print("free words of a member's stack: ",
                static_cast<std::uint32_t>(uxTaskGetStackHighWaterMark(task)), '\n');
  }
  port::exit(same ? 0 : 1);
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
  one_core.initialize(attune::XavierUniform{}, attune::Rng(1));
  start_training();
  began = xTaskGetTickCount();
  vTaskStartScheduler();
}
