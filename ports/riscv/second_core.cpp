// The second hart of a machine with a CLINT, as in QEMU's virt and chips of SiFive. Both begin at the first
// instruction; hart 1 sleeps until its software interrupt pends and there is an entry. A hart that waits
// sleeps until the other one sets its software interrupt. No handler runs for it.
#include "../second_core.hpp"

#include "hart.hpp"

namespace {

constexpr std::uint32_t kPaint = 0xA77E57ACU;
constexpr int kSecondStackWords = kSecondStackBytes / sizeof(std::uint32_t);
constexpr std::uint32_t kSoftwareInterrupt = 1U << 3;  // in mie and mip
constexpr std::uint32_t kInterrupts = 1U << 3;         // in mstatus

struct SecondStack {
  std::uint32_t guard[kStackGuardBytes / sizeof(std::uint32_t)];
  std::uint32_t words[kSecondStackWords];
};
[[gnu::section(".noinit.second_stack")]] alignas(kStackGuardBytes) SecondStack second_stack
    asm("second_stack");
void (*volatile entry_of_second_hart)() asm("entry_of_second_hart");

std::uint32_t hart() {
  std::uint32_t number;
  asm volatile("csrr %0, mhartid" : "=r"(number));
  return number;
}
volatile std::uint32_t& software_interrupt_of(std::uint32_t number) {
  return reinterpret_cast<volatile std::uint32_t*>(0x02000000)[number];
}

}  // namespace

extern "C" [[noreturn, gnu::used]] void begin_second_hart() {
  set_up_hart(second_stack.guard);
  software_interrupt_of(1) = 0;
  entry_of_second_hart();
  for (;;) asm volatile("wfi");
}

// Interrupts are off.
extern "C" [[gnu::naked]] void other_hart() {
  asm volatile(
      "li   t0, %0             \n"
      "csrs mie, t0            \n"
      "1:                      \n"
      "wfi                     \n"
      "csrr t1, mip            \n"
      "and  t1, t1, t0         \n"
      "beqz t1, 1b             \n"
      "fence rw, rw            \n"
      "la   t1, entry_of_second_hart \n"
      "lw   t1, 0(t1)          \n"
      "bnez t1, 2f             \n"
      "li   t1, 0x02000004     \n"
      "sw   zero, 0(t1)        \n"
      "fence                   \n"
      "j    1b                 \n"
      "2:                      \n"
      "csrw mie, zero          \n"
      "la   sp, second_stack + %1 \n"
      "csrw mscratch, sp       \n"
#if defined(__riscv_flen)
      "li   t0, 0x2000         \n"
      "csrs mstatus, t0        \n"
      "csrw fcsr, zero         \n"
#endif
      "j    begin_second_hart  \n" ::"i"(kSoftwareInterrupt),
      "i"(sizeof(SecondStack)));
}

void port::SecondCore::start(void (*entry)()) {
  for (volatile std::uint32_t& word : second_stack.words) word = kPaint;
  entry_of_second_hart = entry;
  wake();
}

std::size_t port::SecondCore::stack_high_water() {
  const volatile std::uint32_t *word = second_stack.words, *const top = word + kSecondStackWords;
  while (word < top && *word == kPaint) ++word;
  return static_cast<std::size_t>(top - word) * sizeof(std::uint32_t);
}

// A wake() after the last look is still pending here, and one between the wfi and the end is seen by the next
// look.
void port::SecondCore::relax() {
  std::uint32_t status;
  asm volatile("csrrci %0, mstatus, %1\n csrs mie, %2\n wfi\n csrc mie, %2"
               : "=&r"(status)
               : "i"(kInterrupts), "r"(kSoftwareInterrupt)
               : "memory");
  software_interrupt_of(hart()) = 0;
  asm volatile("fence\n csrs mstatus, %0" ::"r"(status & kInterrupts) : "memory");
}

void port::SecondCore::wake() {
  asm volatile("fence" ::: "memory");
  software_interrupt_of(hart() ^ 1U) = 1;
}
