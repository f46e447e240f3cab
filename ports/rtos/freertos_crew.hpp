// Tasks of FreeRTOS as a crew (attune/execution/crew.hpp), which shares the work of a trainer or an
// inference.
//
//   static freertos::Tasks<2, train_task_stack_bytes> tasks;  // all zeros, with the stacks
//   tasks.start();                                            // once, from the task that trains
//   trainer.step(tasks, inputs, targets, options);            // from the same task
//
// The task that calls is member 0, and each other member is a task of the same priority. On a kernel for
// several cores (SMP, configNUMBER_OF_CORES > 1) with configUSE_CORE_AFFINITY, member n runs on core n; this
// moves the calling task to core 0 and keeps it there. On one core the members take turns, to the same bits:
// nothing is gained.
//
// FreeRTOSConfig.h: configSUPPORT_STATIC_ALLOCATION, configUSE_TASK_NOTIFICATIONS, INCLUDE_vTaskDelay and
// INCLUDE_uxTaskPriorityGet 1. Notifications of the calling task stay the program's.
#pragma once

#include <FreeRTOS.h>
#include <task.h>

#include <attune/execution/crew.hpp>

#include "freertos_stack.hpp"

namespace freertos {

#if !INCLUDE_vTaskDelay || !INCLUDE_uxTaskPriorityGet
#error "freertos::Tasks: set INCLUDE_vTaskDelay and INCLUDE_uxTaskPriorityGet to 1 in FreeRTOSConfig.h"
#endif

#if defined(configNUMBER_OF_CORES)
inline constexpr int kCores = configNUMBER_OF_CORES;
#else
inline constexpr int kCores = 1;  // kernels before 11
#endif

/// A number that one task writes and others read. Whoever waits looks again for a moment if there are other
/// cores, then yields to tasks of its priority, then lets tasks of lower priority run, a tick at a time.
class TaskFlag {
 public:
  void reset() { value_.store(0); }
  void publish(std::uint32_t number) { value_.store(number); }
  std::uint32_t wait_for(std::uint32_t number) const {
    for (int looks = 0; !has_reached(number); ++looks) {
      if (looks < kSpins) continue;
      if (looks < kSpins + kYields) {
        taskYIELD();
      } else {
        vTaskDelay(1);
      }
    }
    return value_.load();
  }
  [[nodiscard]] bool has_reached(std::uint32_t number) const {
    return static_cast<std::int32_t>(value_.load() - number) >= 0;
  }
  [[nodiscard]] std::uint32_t value() const { return value_.load(); }

 private:
  static constexpr int kSpins = kCores > 1 ? 200 : 0, kYields = 1000;
  attune::detail::SharedWord value_;
};

/// A Crew of that many tasks, the calling one among them. Indices are dealt out in turn. The work of each
/// other member takes at most `stack_bytes`: what attune_stack_bound says of the calling task is enough.
template <int members, std::size_t stack_bytes>
class Tasks {
  static_assert(members >= 1, "freertos::Tasks: at least one member");
  static_assert(kCores == 1 || members <= kCores,
                "freertos::Tasks: more members than cores, which would wait for each other");

 public:
  static constexpr int kMembers = members;
  using Flag = TaskFlag;

  /// Creates the tasks of the other members, once, from the task that is to be member 0.
  void start() {
    const UBaseType_t priority = uxTaskPriorityGet(nullptr);
#if defined(configUSE_CORE_AFFINITY) && configUSE_CORE_AFFINITY == 1
    vTaskCoreAffinitySet(xTaskGetCurrentTaskHandle(), core(0));
#endif
    for (int member = 1; member < members; ++member) {
      Member& own = others_[member - 1];
      own.crew = this;
      own.number = member;
#if defined(configUSE_CORE_AFFINITY) && configUSE_CORE_AFFINITY == 1
      own.task = xTaskCreateStaticAffinitySet(run_member, "attune", kStackWords, &own, priority, own.stack,
                                              &own.block, core(member));
#else
      own.task = xTaskCreateStatic(run_member, "attune", kStackWords, &own, priority, own.stack, &own.block);
#endif
    }
  }

  /// See Crew. The task that called start() calls it, and is member 0.
  template <class Body>
  void for_each(int count, const Body& body) {
    ATTUNE_ASSERT(members == 1 || others_[0].task != nullptr, "freertos::Tasks: call start() first");
    const auto work = [&](int member) {
      for (int index = member; index < count; index += members) body(member, index);
    };
    work_ = &work;
    call_ = run<decltype(work)>;
    const std::uint32_t turn = posted_.value() + 1U;
    posted_.publish(turn);
    for (int member = 1; member < members; ++member) (void)xTaskNotifyGive(others_[member - 1].task);
    run<decltype(work)>(&work, 0);
    for (int member = 1; member < members; ++member) (void)others_[member - 1].finished.wait_for(turn);
  }

  /// The task of a member from 1 on, for uxTaskGetStackHighWaterMark and the like.
  [[nodiscard]] TaskHandle_t task(int member) const { return others_[member - 1].task; }

 private:
  static constexpr std::size_t kStackWords = stack_words(stack_bytes);
  struct Member {
    Tasks* crew;
    int number;
    TaskHandle_t task;
    Flag finished;  // turns
    StaticTask_t block;
    StackType_t stack[kStackWords];
  };

  static constexpr UBaseType_t core(int number) { return UBaseType_t{1} << number; }
  // Not inlined: one function for all members.
  template <class Work>
  [[gnu::noinline]] static void run(const void* work, int member) {
    (*static_cast<const Work*>(work))(member);
  }
  static void run_member(void* member) {
    Member& own = *static_cast<Member*>(member);
    own.crew->serve(own);
  }
  [[noreturn]] void serve(Member& own) {
    for (std::uint32_t turn = 1;; ++turn) {
      // A notification of somebody else's wakes it in vain.
      while (!posted_.has_reached(turn)) (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
      call_(work_, own.number);
      own.finished.publish(turn);
    }
  }

  const void* work_;
  void (*call_)(const void*, int);
  Flag posted_;  // turns, by the calling task
  Member others_[members > 1 ? members - 1 : 1];
};

}  // namespace freertos
