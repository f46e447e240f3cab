// ports/rtos/zephyr.cpp over a stub of Zephyr's kernel: its threads run one after the other, each from its
// beginning until it waits for the second time. Ends with `N passed, N failed`.
#include <csetjmp>

#include <zephyr/kernel.h>

#include <control_thread_stack.hpp>
#include <train_thread_stack.hpp>

#include "sensor.hpp"

void start_threads();

namespace {

struct Thread {
  k_thread_entry_t entry;
  std::size_t bytes;
  int priority;
  std::uint32_t options;
};
Thread threads[2];
int created = 0, waits = 0;
std::jmp_buf scheduler;

void wait() {
  if (++waits == 2) std::longjmp(scheduler, 1);
}

void run(const Thread& thread) {
  waits = 0;
  if (setjmp(scheduler) == 0) thread.entry(nullptr, nullptr, nullptr);
}

k_sem* given = nullptr;

}  // namespace

k_tid_t k_thread_create(k_thread* thread, k_thread_stack_t*, std::size_t bytes, k_thread_entry_t entry, void*,
                        void*, void*, int priority, std::uint32_t options, k_timeout_t) {
  threads[created++] = {entry, bytes, priority, options};
  return thread;
}
void k_timer_start(k_timer*, k_timeout_t duration, k_timeout_t period) {
  expect(duration.ticks == 1 && period.ticks == 1, "control runs every millisecond");
}
std::uint32_t k_timer_status_sync(k_timer*) {
  wait();
  return 1;
}
void k_sem_give(k_sem* semaphore) {
  given = semaphore;
  if (semaphore->count < semaphore->limit) ++semaphore->count;
}
int k_sem_take(k_sem* semaphore, k_timeout_t timeout) {
  expect(timeout.ticks < 0, "training waits as long as it takes");
  wait();
  --semaphore->count;
  return 0;
}

void end_period() {}

int main() {
  start_threads();
  expect(created == 2 && threads[0].priority > threads[1].priority,
         "training is below control");  // 0 is highest
  expect(((threads[0].options & threads[1].options) & K_FP_REGS) != 0U, "both may use the FPU");
  expect(threads[0].bytes >= train_thread_stack_bytes + 27 * 4, "training has its stack");
  expect(threads[1].bytes >= control_thread_stack_bytes + 27 * 4, "control has its stack");
  constexpr int kWindows = 200;
  while (sensor::periods < 8 * kWindows) {
    run(threads[1]);
    if (given != nullptr && given->count != 0U) run(threads[0]);
  }
  expect_trained(kWindows);
  return result();
}
