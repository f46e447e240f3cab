// What an exception leaves behind, as text, then exit with kFaultExitCode. An interrupt without a handler is
// one, too.
#include <cstddef>
#include <iterator>

#include "../bare_metal/memory_map.hpp"
#include "../console.hpp"
#include "../port.hpp"
#include "hart.hpp"

extern "C" {

// What fault_entry stores, in its order.
struct FaultRegisters {
  std::uint32_t ra, sp, t0, a[4];
  std::uint32_t fill;
};
static_assert(offsetof(FaultRegisters, a) == 12 && sizeof(FaultRegisters) == 32);

// An exception goes to the first vector, interrupt n to the n-th behind it. The timer's handler is
// ticks.cpp's where a program has ticks. The report starts again at the top of the hart's stack (mscratch),
// of which an overflow has left nothing, and never returns.
asm(R"(
    .section .text.trap_vectors, "ax"
    .option push
    .option norvc
    .balign 256
    .global trap_vectors
    .weak timer_interrupt
trap_vectors:
    .rept   7
    j       fault_entry
    .endr
    j       timer_interrupt
    .rept   24
    j       fault_entry
    .endr
    .option pop

timer_interrupt:
fault_entry:
    csrrw   sp, mscratch, sp
    addi    sp, sp, -32
    sw      ra, 0(sp)
    sw      t0, 8(sp)
    sw      a0, 12(sp)
    sw      a1, 16(sp)
    sw      a2, 20(sp)
    sw      a3, 24(sp)
    csrr    t0, mscratch
    sw      t0, 4(sp)
    addi    t0, sp, 32
    csrw    mscratch, t0
    mv      a0, sp
    j       report_fault
    .text
)");

[[noreturn, gnu::used]] void report_fault(const FaultRegisters& at) {
  static constexpr const char* kExceptions[] = {
      "instruction address misaligned", "instruction access", "illegal instruction",      "breakpoint",
      "load address misaligned",        "load access",        "store address misaligned", "store access"};
  constexpr std::uint32_t kInterrupt = 1U << 31, kStoreAccess = 7;
  std::uint32_t mcause, mtval, mepc, mstatus, hart;
  asm volatile("csrr %0, mhartid" : "=r"(hart));
  asm volatile("csrr %0, mcause\n csrr %1, mtval" : "=r"(mcause), "=r"(mtval));
  asm volatile("csrr %0, mepc\n csrr %1, mstatus" : "=r"(mepc), "=r"(mstatus));
  const char* kind = (mcause & kInterrupt) != 0U       ? "interrupt"
                     : mcause < std::size(kExceptions) ? kExceptions[mcause]
                                                       : "exception";
  port::print("\nfault: ", kind, " on ", port::name(), hart != 0U ? ", second core\n" : "\n");

  // Below the stack nothing may be accessed.
  const auto address = [](const void* of) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(of));
  };
  const std::uint32_t limit = hart != 0U ? address(&at + 1) - kSecondStackBytes : address(stack_limit);
  if (at.sp < limit && mcause == kStoreAccess && mtval < limit && mtval >= at.sp) {
    port::print("  stack overflow: sp ", port::hex8(at.sp), " of a stack that ends at ", port::hex8(limit),
                '\n');
  }
  port::print("  a0 ", port::hex8(at.a[0]), "  a1 ", port::hex8(at.a[1]), "  a2 ", port::hex8(at.a[2]),
              "  a3 ", port::hex8(at.a[3]), '\n');
  port::print("  t0 ", port::hex8(at.t0), "  ra ", port::hex8(at.ra), "  pc ", port::hex8(mepc), "  mstatus ",
              port::hex8(mstatus), '\n');
  port::print("  mcause ", port::hex8(mcause), "  mtval ", port::hex8(mtval), "  sp ", port::hex8(at.sp),
              '\n');
  port::exit(port::kFaultExitCode);
}
}
