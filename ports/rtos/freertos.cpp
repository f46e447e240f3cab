// Training in a task of FreeRTOS, below a control loop. FreeRTOSConfig.h: configSUPPORT_STATIC_ALLOCATION 1,
// configUSE_PREEMPTION 1, configUSE_TASK_NOTIFICATIONS 1, configCHECK_FOR_STACK_OVERFLOW 2.
#include <FreeRTOS.h>
#include <task.h>

#include <control_task_stack.hpp>  // by attune_stack_bound
#include <train_task_stack.hpp>

#include "application.hpp"
#include "freertos_stack.hpp"

namespace {

constexpr std::size_t kControlWords = freertos::stack_words(control_task_stack_bytes),
                      kTrainWords = freertos::stack_words(train_task_stack_bytes);
StackType_t control_stack[kControlWords], train_stack[kTrainWords];
StaticTask_t control_block, train_block;
TaskHandle_t training;

}  // namespace

// At a fixed rate, whatever training is doing.
extern "C" void control_task(void*) {
  TickType_t due = xTaskGetTickCount();
  for (;;) {
    xTaskDelayUntil(&due, pdMS_TO_TICKS(1));
    if (application::control()) xTaskNotifyGive(training);
  }
}

// In what time control leaves; never waits in the middle of a step.
extern "C" void train_task(void*) {
  for (;;) {
    ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
    application::train();
  }
}

// Before vTaskStartScheduler.
void start_tasks() {
  application::begin();
  training = xTaskCreateStatic(train_task, "train", kTrainWords, nullptr, tskIDLE_PRIORITY + 1, train_stack,
                               &train_block);
  xTaskCreateStatic(control_task, "control", kControlWords, nullptr, configMAX_PRIORITIES - 1, control_stack,
                    &control_block);
}
