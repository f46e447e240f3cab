// ports/rtos/freertos_crew.cpp over a stand-in of FreeRTOS's scheduler, on threads: with ATTUNE_STUB_CORES 1
// one task runs at a time, with 2 one on each core. As the real one does, it
//
//   switches tasks of the same priority only where they yield or block, and favors higher ones
//   keeps a task on its core until then, also while another core is idle and a task waits for this one
//   adds notifications up, whoever gives them, and takes all at once
//   owns the static buffers of a task
//
// Time passes with calls of the kernel. Ends with `N passed, N failed`.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <FreeRTOS.h>
#include <task.h>

#include <train_on_cores_stack.hpp>

#include "console.hpp"
#include "port.hpp"
#include "rtos/crew_application.hpp"
#include "rtos/freertos_crew.hpp"

void start_training();
TaskHandle_t second_member();

struct tskTaskControlBlock {
  TaskFunction_t code = nullptr;
  void* argument = nullptr;
  UBaseType_t priority = 0;
  StackType_t* stack = nullptr;
  std::uint32_t words = 0;
  StaticTask_t* block = nullptr;
  UBaseType_t affinity = 0;
  std::uint32_t notifications = 0;
  bool waits_for_notification = false;
  TickType_t due = 0;  // of a task in vTaskDelay
  int core = -1;       // that it runs on
  std::condition_variable scheduled;
};

namespace {

using Task = tskTaskControlBlock;
constexpr int kCores = ATTUNE_STUB_CORES;
constexpr UBaseType_t kAnyCore = ~UBaseType_t{0};

int passed = 0, failed = 0;
void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}
[[noreturn]] void end() {
  port::print(passed, " passed, ", failed, " failed\n");
  port::exit(failed == 0 ? 0 : 1);
}

std::mutex kernel;
std::vector<Task*> tasks, ready, delayed;  // ready ones in the order of their turns
Task* running[kCores];
TickType_t now = 0;
int most_running = 0;
thread_local Task* current = nullptr;

void let_run(Task& task, int core) {
  ready.erase(std::find(ready.begin(), ready.end(), &task));
  running[core] = &task;
  task.core = core;
  task.scheduled.notify_one();
}
// Gives idle cores to tasks that are ready; time passes if there are none.
void dispatch() {
  for (;;) {
    for (int core = 0; core < kCores; ++core) {
      if (running[core] != nullptr) continue;
      Task* next = nullptr;
      for (Task* task : ready) {
        const bool allowed = (task->affinity >> core & 1U) != 0U;
        if (allowed && (next == nullptr || task->priority > next->priority)) next = task;
      }
      if (next != nullptr) let_run(*next, core);
    }
    const auto busy = std::count_if(running, running + kCores, [](Task* task) { return task != nullptr; });
    most_running = std::max(most_running, static_cast<int>(busy));
    if (busy > 0) return;
    if (delayed.empty()) {
      expect(false, "a task can run");
      end();
    }
    ++now;
    for (Task* task : std::vector<Task*>(delayed)) {
      if (static_cast<std::int32_t>(now - task->due) < 0) continue;
      delayed.erase(std::find(delayed.begin(), delayed.end(), task));
      ready.push_back(task);
    }
  }
}
// Leaves the core of the current task, which waits for its next turn.
void leave(std::unique_lock<std::mutex>& lock, std::vector<Task*>* list) {
  running[current->core] = nullptr;
  current->core = -1;
  if (list != nullptr) list->push_back(current);
  dispatch();
  current->scheduled.wait(lock, [] { return current->core >= 0; });
}
// A task of higher priority takes the core of the current one.
void preempt(std::unique_lock<std::mutex>& lock) {
  const bool higher = std::any_of(ready.begin(), ready.end(), [](Task* task) {
    return task->priority > current->priority && (task->affinity >> current->core & 1U) != 0U;
  });
  if (higher) leave(lock, &ready);
}

TaskHandle_t create(TaskFunction_t code, std::uint32_t words, void* argument, UBaseType_t priority,
                    StackType_t* stack, StaticTask_t* block, UBaseType_t affinity) {
  expect(stack != nullptr && block != nullptr, "a static task has buffers");
  for (const Task* task : tasks) {
    expect(stack + words <= task->stack || stack >= task->stack + task->words, "no two tasks share a stack");
    expect(block != task->block, "no two tasks share a block");
  }
  std::memset(stack, 0xA5, words * sizeof *stack);
  std::memset(block, 0x5A, sizeof *block);
  auto* const task = new Task;
  task->code = code;
  task->argument = argument;
  task->priority = priority;
  task->stack = stack;
  task->words = words;
  task->block = block;
  task->affinity = affinity;
  tasks.push_back(task);
  ready.push_back(task);
  std::thread([task] {
    current = task;
    {
      std::unique_lock lock(kernel);
      task->scheduled.wait(lock, [&] { return task->core >= 0; });
    }
    task->code(task->argument);
  }).detach();
  return task;
}

// Another task of the program, below the members. It notifies everybody.
StackType_t other_stack[64];
StaticTask_t other_block;
std::atomic<int> other_turns = 0;
void other_task(void*) {
  for (;; ++other_turns) {
    for (Task* task : std::vector<Task*>(tasks)) (void)xTaskNotifyGive(task);
    vTaskDelay(1);
  }
}

constexpr int kSteps = 200;
crew_application::OnOneCore one_core;
crew_application::OnOneCore::BatchInput inputs;
crew_application::OnOneCore::BatchTarget targets;
int steps = 0;
bool same = true;

}  // namespace

TaskHandle_t xTaskCreateStatic(TaskFunction_t code, const char*, std::uint32_t words, void* argument,
                               UBaseType_t priority, StackType_t* stack, StaticTask_t* block) {
  std::unique_lock lock(kernel);
  Task* const task = create(code, words, argument, priority, stack, block, kAnyCore);
  if (current != nullptr) preempt(lock);
  return task;
}
TaskHandle_t xTaskCreateStaticAffinitySet(TaskFunction_t code, const char*, std::uint32_t words,
                                          void* argument, UBaseType_t priority, StackType_t* stack,
                                          StaticTask_t* block, UBaseType_t affinity) {
  std::unique_lock lock(kernel);
  expect((affinity & ((UBaseType_t{1} << kCores) - 1U)) != 0U, "a task may run on a core that there is");
  Task* const task = create(code, words, argument, priority, stack, block, affinity);
  if (current != nullptr) dispatch();
  return task;
}
void vTaskCoreAffinitySet(TaskHandle_t task, UBaseType_t affinity) {
  std::unique_lock lock(kernel);
  task->affinity = affinity;
  if (task == current && (affinity >> current->core & 1U) == 0U) leave(lock, &ready);
}
TaskHandle_t xTaskGetCurrentTaskHandle() { return current; }
UBaseType_t uxTaskPriorityGet(TaskHandle_t task) { return (task != nullptr ? task : current)->priority; }
void vTaskPrioritySet(TaskHandle_t task, UBaseType_t priority) {
  std::unique_lock lock(kernel);
  (task != nullptr ? task : current)->priority = priority;
  preempt(lock);
}
void vPortYield() {
  std::unique_lock lock(kernel);
  const bool others = std::any_of(ready.begin(), ready.end(), [](Task* task) {
    return task->priority >= current->priority && (task->affinity >> current->core & 1U) != 0U;
  });
  if (others) leave(lock, &ready);
}
void vTaskDelay(TickType_t ticks) {
  std::unique_lock lock(kernel);
  expect(ticks > 0, "a delay is no yield");
  current->due = now + ticks;
  leave(lock, &delayed);
}
BaseType_t xTaskNotifyGive(TaskHandle_t task) {
  std::unique_lock lock(kernel);
  ++task->notifications;
  if (task->waits_for_notification) {
    task->waits_for_notification = false;
    ready.push_back(task);
    dispatch();
    preempt(lock);
  }
  return pdTRUE;
}
std::uint32_t ulTaskNotifyTake(BaseType_t clear, TickType_t timeout) {
  std::unique_lock lock(kernel);
  expect(clear == pdTRUE && timeout == portMAX_DELAY, "a member waits as long as it takes");
  if (current->notifications == 0) {
    current->waits_for_notification = true;
    leave(lock, nullptr);
  }
  return std::exchange(current->notifications, 0U);
}

void crew_application::read_batch(OnOneCore::BatchInput& batch_inputs,
                                  OnOneCore::BatchTarget& batch_targets) {
  static attune::Rng rng(2);
  for (float& value : inputs.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : targets.values) value = rng.uniform(-1.0f, 1.0f);
  if (steps % 10 == 3) inputs.values[0] = NAN;  // refused, and nobody waits for the sequence
  batch_inputs = inputs;
  batch_targets = targets;
}
void crew_application::end_step(const OnOneCore::State& state, const OnOneCore::Result& result) {
  const auto alone = one_core.step(inputs, targets, kOptions);
  same = same && result.status == alone.status && std::memcmp(&state, &one_core.state(), sizeof state) == 0;
  // A member of lower priority than the one that waits for it.
  if (steps == kSteps / 2) vTaskPrioritySet(nullptr, tskIDLE_PRIORITY + 2);
  if (++steps % 10 == 0) vTaskDelay(1);
  if (steps < kSteps) return;

  std::unique_lock lock(kernel);
  expect(same, "every step has one core's state and status");
  expect(one_core.state().steps == kSteps - kSteps / 10, "refused steps are not counted");
  expect(other_turns > 0, "other tasks run, too");
  expect(tasks.size() == 3, "the crew has a task for each other member");
  const Task &caller = *tasks[0], &member = *second_member();
  expect(caller.words == freertos::stack_words(train_on_cores_stack_bytes) && member.words == caller.words,
         "both have their stack");
  expect(member.priority == tskIDLE_PRIORITY + 1, "a member has the caller's priority");
  expect(caller.notifications >= static_cast<unsigned>(other_turns.load()),
         "notifications of the calling task stay the program's");
  expect(most_running == kCores, "as many tasks run at the same time as there are cores");
  if (kCores > 1) expect(caller.affinity == 1U && member.affinity == 2U, "each member has a core of its own");
  end();
}

int main() {
  one_core.initialize(attune::XavierUniform{}, attune::Rng(1));
  start_training();
  std::unique_lock lock(kernel);
  create(other_task, 64, nullptr, tskIDLE_PRIORITY, other_stack, &other_block, kAnyCore);
  // The caller begins on the core that will be its member's.
  if (kCores > 1) let_run(*tasks[0], kCores - 1);
  dispatch();
  std::condition_variable never;
  never.wait(lock, [] { return false; });
}
