// A firmware whose first instruction with floats finds no floating-point unit: CPACR has it off, as after
// reset. A core without one answers the same.
#include <cstdint>

int main() {
  *reinterpret_cast<volatile std::uint32_t*>(0xE000ED88) = 0;
  asm volatile(
      "dsb              \n"
      "isb              \n"
      ".inst.w 0xee000a10 \n"  // vmov s0, r0
  );
  return 0;
}
