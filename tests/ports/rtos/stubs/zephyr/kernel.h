// The part of Zephyr's kernel that ports/rtos/zephyr.cpp names, as its documentation has it.
#pragma once

#include <cstddef>
#include <cstdint>

struct k_thread {
  int priority;
};
struct k_timer {
  int due;
};
struct k_sem {
  unsigned count, limit;
};
struct k_timeout_t {
  std::int64_t ticks;
};
using k_tid_t = k_thread*;
using k_thread_entry_t = void (*)(void*, void*, void*);
struct alignas(8) z_thread_stack_element {
  char data;
};
using k_thread_stack_t = z_thread_stack_element;

#define CONFIG_NUM_PREEMPT_PRIORITIES 15
#define K_LOWEST_APPLICATION_THREAD_PRIO (CONFIG_NUM_PREEMPT_PRIORITIES - 1)
#define K_FP_REGS (1U << 1)
#define K_MSEC(ms) (k_timeout_t{(ms)})
#define K_NO_WAIT (k_timeout_t{0})
#define K_FOREVER (k_timeout_t{-1})
#define K_THREAD_STACK_DEFINE(sym, size) \
  z_thread_stack_element sym[((size) + 7) / sizeof(z_thread_stack_element)]
#define K_THREAD_STACK_SIZEOF(sym) (sizeof(sym))
#define K_TIMER_DEFINE(name, expiry_fn, stop_fn) k_timer name
#define K_SEM_DEFINE(name, initial_count, count_limit) \
  k_sem name { (initial_count), (count_limit) }

extern "C" {
k_tid_t k_thread_create(k_thread* new_thread, k_thread_stack_t* stack, std::size_t stack_size,
                        k_thread_entry_t entry, void* p1, void* p2, void* p3, int prio, std::uint32_t options,
                        k_timeout_t delay);
void k_timer_start(k_timer* timer, k_timeout_t duration, k_timeout_t period);
std::uint32_t k_timer_status_sync(k_timer* timer);
void k_sem_give(k_sem* sem);
int k_sem_take(k_sem* sem, k_timeout_t timeout);
}
