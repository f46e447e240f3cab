// Arm semihosting: requests to the debugger or emulator that runs the program (Arm IHI 0097, "Semihosting for
// AArch32 and AArch64"; "RISC-V Semihosting", 0.3, has the same operations). Without a debugger the trap is a
// fault.
#pragma once

#include <cstdint>

namespace semihosting {

enum class Operation : std::uint32_t {
  kOpen = 0x01,
  kWrite = 0x05,
  kGetCommandLine = 0x15,
  kExitExtended = 0x20,
  kElapsed = 0x30,
  kTickFrequency = 0x31,
};

// `block` is the operation's argument block, an array of words; the answer is what the operation leaves in
// r0.
inline std::int32_t call(Operation operation, const void* block) {
#if defined(__riscv)
  register std::uint32_t a0 asm("a0") = static_cast<std::uint32_t>(operation);
  register const void* a1 asm("a1") = block;
  // The three instructions are what tells the request from a breakpoint: never compressed, and in one page.
  asm volatile(
      ".option push\n .option norvc\n .balign 16\n"
      "slli zero, zero, 0x1f\n ebreak\n srai zero, zero, 7\n"
      ".option pop"
      : "+r"(a0)
      : "r"(a1)
      : "memory");
  return static_cast<std::int32_t>(a0);
#else
  register std::uint32_t r0 asm("r0") = static_cast<std::uint32_t>(operation);
  register const void* r1 asm("r1") = block;
#if __ARM_ARCH_PROFILE == 'M'
  asm volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
#elif defined(__thumb__)
  asm volatile("svc 0xAB" : "+r"(r0) : "r"(r1) : "memory", "lr");
#else
  asm volatile("svc 0x123456" : "+r"(r0) : "r"(r1) : "memory", "lr");
#endif
  return static_cast<std::int32_t>(r0);
#endif
}

}  // namespace semihosting
