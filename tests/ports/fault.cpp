// A firmware that faults on purpose: its registers are known, and `deliberate_fault` is the address of the
// instruction.
#include <cstdint>

int main() {
#if defined(__riscv)
  register std::uint32_t a0 asm("a0") = 0x11111110U;
  register std::uint32_t a1 asm("a1") = 0x22222221U;
  register std::uint32_t a2 asm("a2") = 0x33333332U;
  register std::uint32_t a3 asm("a3") = 0x44444443U;
  register std::uint32_t t0 asm("t0") = 0x5555555CU;
  asm volatile(
      ".global deliberate_fault  \n"
      "deliberate_fault:         \n"
      "unimp                     \n" ::"r"(a0),
      "r"(a1), "r"(a2), "r"(a3), "r"(t0));
#elif defined(__xtensa__)
  asm volatile(
      ".global deliberate_fault  \n"
      "deliberate_fault:         \n"
      "ill                       \n");
#else
  register std::uint32_t r0 asm("r0") = 0x11111110U;
  register std::uint32_t r1 asm("r1") = 0x22222221U;
  register std::uint32_t r2 asm("r2") = 0x33333332U;
  register std::uint32_t r3 asm("r3") = 0x44444443U;
  register std::uint32_t r12 asm("r12") = 0x5555555CU;
  asm volatile(
      ".global deliberate_fault  \n"
      "deliberate_fault:         \n"
      "udf #0                    \n" ::"r"(r0),
      "r"(r1), "r"(r2), "r"(r3), "r"(r12));
#endif
  return 0;
}
