#include "program.hpp"

#include "../port.hpp"
#include "memory_map.hpp"

// C++ forbids calling main by its name.
extern "C" int program_main() asm("main");

extern "C" {
// Statics with destructors register them here; the program ends by stopping the machine, so they never run.
void* __dso_handle = nullptr;
int __aeabi_atexit(void*, void (*)(void*), void*) { return 0; }  // Arm
int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }    // others
}

void run_program() {
  const std::uint32_t* source = data_load;
  for (std::uint32_t* word = data_begin; word != data_end; ++word) {
    *word = *source++;
    asm volatile("" ::: "memory");  // no call of memcpy, which is 300 bytes
  }
  for (std::uint32_t* word = bss_begin; word != bss_end; ++word) *word = 0;
  port::paint_stack();
  for (const auto* initialize = init_array_begin; initialize != init_array_end; ++initialize) (*initialize)();
  port::exit(program_main());
}
