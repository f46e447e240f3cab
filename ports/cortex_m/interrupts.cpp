// The vectors of a program's external interrupts, ATTUNE_INTERRUPTS of them: interrupt_0_handler and so on,
// each of which a program may define. What comes without a handler is told and is a fault.
#include <cstdint>

#include "../console.hpp"

#define ATTUNE_TEXT_OF(name) #name
#define ATTUNE_TEXT(name) ATTUNE_TEXT_OF(name)

extern "C" [[gnu::used]] void report_interrupt() {
  std::uint32_t exception;
  asm volatile("mrs %0, ipsr" : "=r"(exception));
  port::print("\ninterrupt ", exception - 16U, " has no handler: interrupt_", exception - 16U, "_handler\n");
}

// fault_handler wants the stack as the interrupt left it.
asm(R"(
    .syntax unified
    .text
    .thumb
    .thumb_func
unexpected_interrupt:
    push    {r3, lr}
    bl      report_interrupt
    pop     {r2, r3}
    mov     lr, r3
    ldr     r0, =fault_handler
    bx      r0
    .ltorg

    .section .vectors.interrupts, "a"
    .altmacro
    .macro  vector number
    .weak   interrupt_\number\()_handler
    .thumb_set interrupt_\number\()_handler, unexpected_interrupt
    .word   interrupt_\number\()_handler
    .endm
    .set    number, 0
    .rept   )" ATTUNE_TEXT(ATTUNE_INTERRUPTS) R"(
    vector  %number
    .set    number, number + 1
    .endr
    .noaltmacro
    .text
)");
