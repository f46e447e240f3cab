// Linked beside the objects of a firmware, which stay as they are: tells at the program's end how much stack
// was in use at worst. The linker's --wrap sends calls of port::exit here.
#include <console.hpp>
#include <port.hpp>
#if ATTUNE_BUDGET_CORES == 2
#include <second_core.hpp>
#endif

extern "C" {
[[noreturn]] void real_exit(int code) asm("__real__ZN4port4exitEi");
[[noreturn]] void wrapped_exit(int code) asm("__wrap__ZN4port4exitEi");

void wrapped_exit(int code) {
  port::print("stack_bytes ", port::stack_high_water(), '\n');
#if ATTUNE_BUDGET_CORES == 2
  port::print("second_stack_bytes ", port::SecondCore::stack_high_water(), '\n');
#endif
  real_exit(code);
}
}
