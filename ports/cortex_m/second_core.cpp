#include "second_core.hpp"

#include "../second_core.hpp"
#include "floating_point.hpp"
#include "stack_guard.hpp"

extern "C" {
[[gnu::section(".noinit.second_stack")]] alignas(kSecondStackGuardWords > 0
                                                     ? kStackGuardBytes
                                                     : 8) std::uint32_t second_stack[kSecondStackWords];
void second_reset_handler();
void second_fault_handler();
}

namespace {

constexpr std::uint32_t kPaint = 0xA77E57ACU;

using Handler = void (*)();
struct Vectors {
  std::uint32_t* initial_stack;
  Handler reset;
  Handler others[14];
};
#if __ARM_ARCH_ISA_THUMB == 1
constexpr std::size_t kVectorsAlignment = 256;  // VTOR of a Cortex-M0+
#else
constexpr std::size_t kVectorsAlignment = 128;
#endif
alignas(kVectorsAlignment) constinit const Vectors kVectors{
    second_stack + kSecondStackWords,
    second_reset_handler,
    {second_fault_handler, second_fault_handler, second_fault_handler, second_fault_handler,
     second_fault_handler, second_fault_handler, second_fault_handler, second_fault_handler,
     second_fault_handler, second_fault_handler, second_fault_handler, second_fault_handler,
     second_fault_handler, second_fault_handler}};

void (*volatile entry_of_second_core)();

}  // namespace

void second_reset_handler() {
  enable_floating_point();
  guard_stack(second_stack + kSecondStackGuardWords);
  entry_of_second_core();  // through memory, so that no floating-point instruction moves up
  for (;;) asm volatile("wfe");
}

// As fault_handler: a report on an overflow starts again at the top of this core's stack, without a limit.
[[gnu::naked, gnu::used]] void second_fault_handler() {
  asm volatile(
      ".syntax unified         \n"
      "mov  r0, sp             \n"
      "ldr  r1, =second_stack + 512 \n"
      "cmp  r0, r1             \n"
      "bhs  1f                 \n"
#if __ARM_ARCH >= 8
      "movs r1, #0             \n"
      "msr  msplim, r1         \n"
#endif
      "ldr  r1, =second_stack + %c0 \n"
      "mov  sp, r1             \n"
      "1:                      \n"
      "ldr  r1, =report_fault  \n"
      "bx   r1                 \n"
      ".ltorg                  \n" ::"i"(4 * kSecondStackWords));
}

void port::SecondCore::start(void (*entry)()) {
  for (volatile std::uint32_t& word : second_stack) word = kPaint;
  entry_of_second_core = entry;
  release_second_core(&kVectors);
}

std::size_t port::SecondCore::stack_high_water() {
  const volatile std::uint32_t* word = second_stack + kSecondStackGuardWords;
  while (word < second_stack + kSecondStackWords && *word == kPaint) ++word;
  return static_cast<std::size_t>(second_stack + kSecondStackWords - word) * sizeof(std::uint32_t);
}
