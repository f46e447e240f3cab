// ports/rtos/freertos.cpp over a stub of FreeRTOS: its tasks run one after the other, each from its beginning
// until it waits for the second time. Ends with `N passed, N failed`.
#include <csetjmp>

#include <FreeRTOS.h>
#include <task.h>

#include <control_task_stack.hpp>
#include <train_task_stack.hpp>

#include "rtos/freertos_stack.hpp"
#include "sensor.hpp"

void start_tasks();

struct tskTaskControlBlock {
  TaskFunction_t code;
  std::uint32_t words;
  UBaseType_t priority;
  StackType_t* stack;
};

namespace {

tskTaskControlBlock tasks[2];
int created = 0, waits = 0;
std::uint32_t notifications = 0;
TickType_t now = 0;
std::jmp_buf scheduler;

void wait() {
  if (++waits == 2) std::longjmp(scheduler, 1);
}

void run(const tskTaskControlBlock& task) {
  waits = 0;
  if (setjmp(scheduler) == 0) task.code(nullptr);
}

}  // namespace

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char*, std::uint32_t words, void*,
                               UBaseType_t priority, StackType_t* stack, StaticTask_t*) {
  tasks[created] = {code, words, priority, stack};
  return &tasks[created++];
}
TickType_t xTaskGetTickCount() { return now; }
BaseType_t xTaskDelayUntil(TickType_t* previous, TickType_t increment) {
  expect(increment == 1, "control runs every millisecond");
  wait();
  *previous += increment;
  return pdTRUE;
}
BaseType_t xTaskNotifyGive(TaskHandle_t task) {
  expect(task == &tasks[0], "training is notified");
  ++notifications;
  return pdTRUE;
}
std::uint32_t ulTaskNotifyTake(BaseType_t, TickType_t timeout) {
  expect(timeout == portMAX_DELAY, "training waits as long as it takes");
  wait();
  const std::uint32_t taken = notifications;
  notifications = 0;
  return taken;
}

void end_period() {}

int main() {
  start_tasks();
  expect(created == 2 && tasks[0].priority < tasks[1].priority, "training is below control");
  expect(tasks[0].words == freertos::stack_words(train_task_stack_bytes), "training has its stack");
  expect(tasks[1].words == freertos::stack_words(control_task_stack_bytes), "control has its stack");
  constexpr int kWindows = 200;
  while (sensor::periods < 8 * kWindows) {
    ++now;
    run(tasks[1]);
    if (notifications != 0) run(tasks[0]);
  }
  expect_trained(kWindows);
  return result();
}
