// A firmware that faults on purpose: its registers are known, and `deliberate_fault` is the address of the
// instruction.
#include <cstdint>

int main() {
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
  return 0;
}
