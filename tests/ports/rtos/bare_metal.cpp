// ports/rtos/bare_metal.cpp: control above training, on one stack. Ends with `N passed, N failed`.
#include <on_tick_stack.hpp>
#include <pendsv_handler_stack.hpp>
#include <reset_handler_stack.hpp>

#include "sensor.hpp"
#include "ticks.hpp"

void train_forever();

// Ends the program: training never does.
void end_period() {
  if (sensor::periods != 2000) return;
  expect(application::trainer.state().steps > 100, "the program trains");
  expect(sensor::last_error < 0.1f * sensor::first_error,
         "control is better with what was trained meanwhile");
  // Two interrupts, each with the registers that the processor saves and, for this, one caller of on_tick.
  constexpr std::size_t kFrames = 2 * 27 * 4 + 16;
  expect(port::stack_high_water() <=
             reset_handler_stack_bytes + pendsv_handler_stack_bytes + on_tick_stack_bytes + kFrames,
         "the stack is no more than the bounds of all that run on it");
  port::exit(result());
}

int main() {
  train_forever();
  return 1;
}
