// Training on both cores with FreeRTOS (SMP), a task on each; with one core the two tasks take turns. What
// FreeRTOSConfig.h needs is in freertos_crew.hpp.
#include <FreeRTOS.h>
#include <task.h>

#include <train_on_cores_stack.hpp>  // by attune_stack_bound

#include "crew_application.hpp"
#include "freertos_crew.hpp"

namespace {

using namespace crew_application;

constinit freertos::Tasks<2, train_on_cores_stack_bytes> tasks{};
attune::CrewTrainer<decltype(tasks), Layer, attune::MeanSquaredError, attune::AdamW, kBatch> trainer;
OnOneCore::BatchInput inputs;
OnOneCore::BatchTarget targets;

StackType_t stack[freertos::stack_words(train_on_cores_stack_bytes)];
StaticTask_t block;

}  // namespace

// Member 0. The other member is a task of the same priority.
extern "C" void train_on_cores(void*) {
  tasks.start();
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  for (;;) {
    read_batch(inputs, targets);
    end_step(trainer.state(), trainer.step(tasks, inputs, targets, kOptions));
  }
}

// Before vTaskStartScheduler.
void start_training() {
  xTaskCreateStatic(train_on_cores, "train", sizeof stack / sizeof stack[0], nullptr, tskIDLE_PRIORITY + 1,
                    stack, &block);
}

// For uxTaskGetStackHighWaterMark.
TaskHandle_t second_member() { return tasks.task(1); }
