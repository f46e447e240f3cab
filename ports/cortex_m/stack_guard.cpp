#include "stack_guard.hpp"

#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)

void guard_stack(std::uint32_t* stack_limit) { asm volatile("msr msplim, %0" ::"r"(stack_limit)); }

#else

void guard_stack(std::uint32_t* stack_limit) {
  const auto mpu = [](std::uintptr_t offset) -> volatile std::uint32_t& {
    return *reinterpret_cast<volatile std::uint32_t*>(0xE000ED90U + offset);
  };
  constexpr std::uintptr_t kType = 0x0, kControl = 0x4, kBase = 0xC, kAttributes = 0x10;
  const bool absent = (mpu(kType) >> 8 & 0xFFU) == 0U;
  const auto limit = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(stack_limit));
  if (absent || limit % kStackGuardBytes != 0U) return;

  constexpr std::uint32_t kSelectsRegion = 1U << 4;  // region 0, in the low bits
  constexpr std::uint32_t kNeverExecuted = 1U << 28, kEnable = 1U;
  constexpr auto kSize = static_cast<std::uint32_t>(__builtin_ctz(kStackGuardBytes) - 1);
  mpu(kBase) = (limit - kStackGuardBytes) | kSelectsRegion;
  mpu(kAttributes) = kNeverExecuted | kSize << 1 | kEnable;
  constexpr std::uint32_t kDefaultMapElsewhere = 1U << 2;
  mpu(kControl) = kDefaultMapElsewhere | kEnable;
  asm volatile("dsb\n isb" ::: "memory");
}

#endif
