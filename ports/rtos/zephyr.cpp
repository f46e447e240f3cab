// Training in a thread of Zephyr, below a control loop. prj.conf: CONFIG_CPP=y, CONFIG_STD_CPP20=y,
// CONFIG_REQUIRES_FULL_LIBCPP=y, and with an FPU CONFIG_FPU=y, CONFIG_FPU_SHARING=y. CONFIG_STACK_SENTINEL=y
// or, with an MPU, CONFIG_MPU_STACK_GUARD=y.
#include <zephyr/kernel.h>

#include <control_thread_stack.hpp>  // by attune_stack_bound
#include <train_thread_stack.hpp>

#include "application.hpp"

// What the processor keeps on a thread's stack while another runs: 27 words of an exception with the FPU's
// registers. The kernel keeps its part in the k_thread.
static constexpr std::size_t kContextBytes = 112;

K_THREAD_STACK_DEFINE(control_stack, control_thread_stack_bytes + kContextBytes);
K_THREAD_STACK_DEFINE(train_stack, train_thread_stack_bytes + kContextBytes);
static struct k_thread control_block, train_block;
K_TIMER_DEFINE(period, nullptr, nullptr);
K_SEM_DEFINE(to_train, 0, 1);

// At a fixed rate, whatever training is doing.
extern "C" void control_thread(void*, void*, void*) {
  k_timer_start(&period, K_MSEC(1), K_MSEC(1));
  for (;;) {
    k_timer_status_sync(&period);
    if (application::control()) k_sem_give(&to_train);
  }
}

// In what time control leaves; never waits in the middle of a step.
extern "C" void train_thread(void*, void*, void*) {
  for (;;) {
    k_sem_take(&to_train, K_FOREVER);
    application::train();
  }
}

void start_threads() {
  application::begin();
  k_thread_create(&train_block, train_stack, K_THREAD_STACK_SIZEOF(train_stack), train_thread, nullptr,
                  nullptr, nullptr, K_LOWEST_APPLICATION_THREAD_PRIO, K_FP_REGS, K_NO_WAIT);
  k_thread_create(&control_block, control_stack, K_THREAD_STACK_SIZEOF(control_stack), control_thread,
                  nullptr, nullptr, nullptr, 0, K_FP_REGS, K_NO_WAIT);
}
