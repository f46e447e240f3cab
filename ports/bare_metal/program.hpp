// From a processor that can run C++ to main.
#pragma once

// Sets up .data and .bss, paints the stack, runs the initializers of statics and main, and ends with
// port::exit.
[[noreturn]] void run_program();
