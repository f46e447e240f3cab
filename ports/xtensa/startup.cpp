// From reset to main on an Xtensa LX106 without windowed registers: interrupts off.
#include "../bare_metal/program.hpp"

extern "C" [[noreturn, gnu::used]] void start_program() { run_program(); }

// The first instructions, for a board that begins elsewhere. The vectors, at their offsets from VECBASE. The processor status has user
// vectors, and no interrupt is open.
asm(R"(
    .section .reset, "ax"
    j       1f
    .literal_position
    .balign 4
1:  movi    a0, reset_handler
    jx      a0

    .section .vectors, "ax"
    .balign 256
exception_vectors:
    .org    0x10
    j       fault_entry
    .org    0x20
    j       fault_entry
    .org    0x30
    j       fault_entry
    .org    0x50
    j       fault_entry
    .org    0x70
    j       fault_entry
    .org    0x80
    .literal_position
    .balign 4
    .global reset_handler
reset_handler:
    movi    a0, exception_vectors
    wsr     a0, vecbase
    movi    a0, 0x2f
    wsr     a0, ps
    rsync
    movi    a1, stack_top
    movi    a0, start_program
    jx      a0

    .balign 4
fault_entry:
    movi    a1, stack_top
    rsr     a2, exccause
    rsr     a3, epc1
    rsr     a4, excvaddr
    movi    a0, report_fault
    jx      a0
    .text
)");
