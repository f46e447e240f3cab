// What an exception leaves behind, as text, then exit with kFaultExitCode. The ports use no interrupts:
// whatever comes is a fault. Only semihosting's supervisor call is not, and never gets here: the emulator
// answers it.
#include <cstddef>

#include "../bare_metal/memory_map.hpp"
#include "../console.hpp"
#include "../port.hpp"

extern "C" {

// What fault_handler stores, in its order.
struct FaultRegisters {
  std::uint32_t r[13], return_address, cpsr, sp, lr;
};
static_assert(offsetof(FaultRegisters, return_address) == 52 && sizeof(FaultRegisters) == 68);
FaultRegisters fault_registers;

// An exception enters in Arm state in a mode of its own, with its own sp and lr. The registers go to
// fault_registers; the report starts again at the top of the program's stack, of which an overflow has left
// nothing, and never returns.
asm(R"(
    .section .vectors, "ax"
    .arm
    .balign 32
    .global exception_vectors
exception_vectors:
    b       .
    b       undefined_instruction
    b       supervisor_call
    b       prefetch_abort
    b       data_abort
    b       .
    b       interrupt
    b       fast_interrupt

    .macro  fault_entry name, number
\name:
    ldr     sp, =fault_registers
    stmia   sp, {r0-r12}
    mov     r0, #\number
    b       fault_handler
    .endm
    fault_entry undefined_instruction, 0
    fault_entry supervisor_call, 1
    fault_entry prefetch_abort, 2
    fault_entry data_abort, 3
    fault_entry interrupt, 4
    fault_entry fast_interrupt, 5

fault_handler:
    mov     r1, sp
    str     lr, [r1, #52]
    mrs     r2, spsr
    str     r2, [r1, #56]
    cps     #0x13
    str     sp, [r1, #60]
    str     lr, [r1, #64]
    ldr     sp, =stack_top
    ldr     r1, =report_fault
    bx      r1
    .ltorg
    .thumb
    .text
)");

[[noreturn, gnu::used]] void report_fault(std::uint32_t exception) {
  struct Kind {
    const char* name;
    std::uint32_t from_arm, from_thumb;  // how far the return address is behind the instruction
  };
  static constexpr Kind kKinds[] = {{"undefined instruction", 4, 2},
                                    {"supervisor call", 4, 2},
                                    {"prefetch abort", 4, 4},
                                    {"data abort", 8, 8},
                                    {"interrupt", 4, 4},
                                    {"fast interrupt", 4, 4}};
  const FaultRegisters& at = fault_registers;
  const Kind& kind = kKinds[exception];
  const bool thumb = (at.cpsr >> 5 & 1U) != 0U;
  port::print("\nfault: ", kind.name, " on ", port::name(), '\n');

  std::uint32_t dfsr, dfar, ifsr, ifar;
  asm volatile("mrc p15, 0, %0, c5, c0, 0" : "=r"(dfsr));
  asm volatile("mrc p15, 0, %0, c6, c0, 0" : "=r"(dfar));
  asm volatile("mrc p15, 0, %0, c5, c0, 1" : "=r"(ifsr));
  asm volatile("mrc p15, 0, %0, c6, c0, 2" : "=r"(ifar));

  // Below the stack there is no memory. A push that is refused leaves sp where it was.
  const auto limit = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stack_limit));
  constexpr std::uint32_t kBelow = 1U << 20;
  const bool refused = exception == 3 && dfar < limit && dfar >= limit - kBelow;
  if (at.sp < limit || refused) {
    port::print("  stack overflow: sp ", port::hex8(at.sp), " of a stack that ends at ", port::hex8(limit),
                '\n');
  }
  port::print("  r0 ", port::hex8(at.r[0]), "  r1 ", port::hex8(at.r[1]), "  r2 ", port::hex8(at.r[2]),
              "  r3 ", port::hex8(at.r[3]), '\n');
  port::print("  r12 ", port::hex8(at.r[12]), "  lr ", port::hex8(at.lr), "  pc ",
              port::hex8(at.return_address - (thumb ? kind.from_thumb : kind.from_arm)), "  cpsr ",
              port::hex8(at.cpsr), '\n');
  port::print("  dfsr ", port::hex8(dfsr), "  dfar ", port::hex8(dfar), "  ifsr ", port::hex8(ifsr),
              "  ifar ", port::hex8(ifar), '\n');
  port::exit(port::kFaultExitCode);
}
}
