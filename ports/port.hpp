// What a port provides: the whole boundary between programs and the machine they run on.
//
// Examples and tests reach the outside world through these functions and nothing else, so the same source
// runs on a PC and on a board. The library itself (lib/) needs none of them.
//
// A new board rarely implements all of it: bare_metal/ measures the stack, name.cpp knows the name, and a
// debugger that answers semihosting does the rest. ports/README.md has the steps, ports/template/port.cpp the
// functions of a board without a debugger: write, is_terminal, command_line, microseconds, exit and
// heap_calls.
// instructions.hpp has two more, which on a Cortex take nobody to implement them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace port {

// The port's folder under ports/: "host", "mps2_an386", ...
const char* name();

// Writes `length` bytes to standard output or to the board's console, unbuffered. Errors are ignored: there
// is nowhere to report them.
void write(const char* text, std::size_t length);

// True if somebody watches the output on a terminal, so that progress may overwrite its own line. Programs
// run through a pipe by examples/run are told by it: the pipe hides the terminal.
bool is_terminal();

// Copies the options that the program was started with into text[size], ended by a zero and separated by
// spaces; an empty text where nobody can give any. ports/arguments.hpp reads numbers from it.
void command_line(char* text, std::size_t size);

// Wall clock in microseconds from an arbitrary start; never runs backwards.
std::uint64_t microseconds();

// Ends the program; `code` (0 to 255) becomes the exit status of the process or of the emulator. Firmware
// also gets here when main returns, and with kFaultExitCode after a processor fault.
[[noreturn]] void exit(int code);
inline constexpr int kFaultExitCode = 99;

// Fills the unused stack below the caller with a pattern. Done once before main; call it again to measure one
// piece of a program.
void paint_stack();

// Bytes of stack used at worst since the last painting, counted from where main was entered (host) or from
// the top of the stack (board). At most the painted zone: 1 MiB on the host, the whole stack on a board. 0 in
// sanitizer builds, where the stack is not laid out as in the real program.
std::size_t stack_high_water();

// Calls of malloc, calloc, realloc, aligned_alloc, posix_memalign and operator new in this process so far;
// take the difference around what is to be checked. Counted with glibc or AddressSanitizer, otherwise 0.
// Always 0 in firmware, where a reachable malloc does not link.
std::size_t heap_calls();

}  // namespace port
