// The size of a FreeRTOS task's stack: the task's own bytes, from attune_stack_bound, and what the processor
// and the kernel keep there. For the ports of the kernel 10.4 to 11.1 for a Cortex-M, in portable/GCC, IAR
// and RVDS.
#pragma once

#include <cstddef>

#include <FreeRTOS.h>

namespace freertos {

/// What decides how much of a stack is not the task's.
struct Kernel {
  bool fpu;                // the task uses floating-point registers
  bool stack_limit;        // Armv8-M: the port saves PSPLIM
  bool trustzone = false;  // configENABLE_TRUSTZONE, and the task's secure context
  bool mpu = false;        // ports with an MPU, which up to 10.5 save CONTROL here
  bool pac = false;        // configENABLE_PAC: the port saves the key
  int overflow_check = 2;  // configCHECK_FOR_STACK_OVERFLOW
};

/// Bytes at the deepest point of a task, when an exception arrives and the kernel switches to another one.
constexpr std::size_t context_bytes(const Kernel& kernel) {
  const std::size_t frame = 4 * (kernel.fpu ? 26 : 8) + 4;  // by the processor, which aligns to 8 bytes
  const std::size_t registers = 4 * (kernel.fpu ? 25 : 9);  // r4-r11, EXC_RETURN, s16-s31
  const std::size_t extras = 4 * ((kernel.stack_limit ? 1 : 0) + (kernel.trustzone ? 1 : 0) +
                                  (kernel.mpu ? 1 : 0) + (kernel.pac ? 4 : 0));
  constexpr std::size_t kTop = 8;  // the kernel starts below the last word, aligned to 8 bytes
  // The kernel checks that four words at the end keep their pattern, or that the stack pointer is above the
  // end.
  return frame + registers + extras + kTop + (kernel.overflow_check > 1 ? 16 : 4);
}

/// This kernel, as its FreeRTOSConfig.h and the compiler's options describe it.
inline constexpr Kernel kKernel {
#if defined(__ARM_ARCH) && !defined(__ARM_FP)
  .fpu = false,
#else
  .fpu = true,
#endif
#if defined(__ARM_ARCH) && __ARM_ARCH < 8
  .stack_limit = false,
#else
  .stack_limit = true,
#endif
#if defined(configENABLE_TRUSTZONE) && configENABLE_TRUSTZONE == 1
  .trustzone = true,
#endif
#if defined(configENABLE_MPU) && configENABLE_MPU == 1
  .mpu = true,
#endif
#if defined(configENABLE_PAC) && configENABLE_PAC == 1
  .pac = true,
#endif
#if defined(configCHECK_FOR_STACK_OVERFLOW)
  .overflow_check = configCHECK_FOR_STACK_OVERFLOW,
#else
  .overflow_check = 0,
#endif
};
inline constexpr std::size_t kContextBytes = context_bytes(kKernel);

/// Words of the stack of a task that takes `bytes` itself.
constexpr std::size_t stack_words(std::size_t bytes) {
  return (bytes + kContextBytes + sizeof(StackType_t) - 1) / sizeof(StackType_t);
}

}  // namespace freertos
