// A tick of fixed rate, and a reset: what a program that works by the clock needs beyond port.hpp. Linked
// only where it is used.
//
//   void on_tick() { samples.push(read_sensor()); }        // in an interrupt: short
//   …
//   port::start_ticks(1000, on_tick);
//   for (std::uint32_t served = 0;; ++served) {
//     port::wait_for_tick(served);
//     …
//   }
//
// On a Cortex-M a tick is the interrupt of SysTick, on RISC-V of the machine timer, and comes while the
// program computes. On the host and on Cortex-A time is simulated: it stands still while the program computes, and wait_for_tick is what ends a
// tick. A program whose results depend on the number of a tick, and not on how far it had computed by then,
// has the same results on both. QEMU's own time passes with the host's clock, unless it is made to count
// instructions: ATTUNE_ICOUNT=N ports/run … (ports/README.md).
#pragma once

#include <cstdint>

namespace port {

// Starts the ticks at number 0, `hertz` of them a second. At each of them on_tick is called, if there is one,
// after ticks() has grown: in the interrupt, or in wait_for_tick. A second call starts anew. SysTick counts
// 24 bits of the processor's clock: `hertz` is clock / 2^24 at least (2 at 25 MHz), otherwise clock / 2^24 it
// is.
void start_ticks(std::uint32_t hertz, void (*on_tick)() = nullptr);

// Ticks since start_ticks; from 2^32 - 1 to 0.
std::uint32_t ticks();

// Returns when ticks() is no longer `seen`, at once if it is not: a program that hands over the last tick it
// has served misses none. The processor sleeps until then.
void wait_for_tick(std::uint32_t seen);

// Whether a tick can come while the program computes.
bool ticks_interrupt();

// Ends the program and starts it again, from the vectors. What lies in [[gnu::section(".noinit")]] (boards)
// stays, everything else is as after loading.
[[noreturn]] void reset();

// Calls of reset() since the power came. On a board this takes eight bytes of RAM.
std::uint32_t reset_count();

}  // namespace port
