// Linked beside the objects of a firmware, which stay as they are: tells at the program's end how much stack
// was in use at worst. The linker's --wrap sends calls of three functions of the port here.
#include <console.hpp>
#include <port.hpp>

#include "../bench/marks.hpp"

extern "C" {
void real_paint_stack() asm("__real__ZN4port11paint_stackEv");
std::size_t real_stack_high_water() asm("__real__ZN4port16stack_high_waterEv");
[[noreturn]] void real_exit(int code) asm("__real__ZN4port4exitEi");
void wrapped_paint_stack() asm("__wrap__ZN4port11paint_stackEv");
std::size_t wrapped_stack_high_water() asm("__wrap__ZN4port16stack_high_waterEv");
[[noreturn]] void wrapped_exit(int code) asm("__wrap__ZN4port4exitEi");

// A program that measures its own stack has these two around its work: what lies between them is counted. The
// painting before main begins nothing that lasts, since the next mark begins again.
void wrapped_paint_stack() {
  real_paint_stack();
  bench::begin();
}
std::size_t wrapped_stack_high_water() {
  bench::end();
  return real_stack_high_water();
}

void wrapped_exit(int code) {
  port::print("stack_bytes ", real_stack_high_water(), '\n');
  real_exit(code);
}
}
