// What a fault leaves behind, as text: the stacked registers and the fault status, then exit with
// kFaultExitCode.
#include "../bare_metal/memory_map.hpp"
#include "../console.hpp"
#include "../port.hpp"
#include "stack_guard.hpp"

namespace {

std::uint32_t address_of(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

#if __ARM_ARCH_ISA_THUMB >= 2
std::uint32_t system_register(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
constexpr std::uintptr_t kCfsr = 0xE000ED28, kHfsr = 0xE000ED2C, kMmfar = 0xE000ED34, kBfar = 0xE000ED38;

bool below_stack(std::uint32_t address) {
  return address < address_of(stack_limit) && address >= address_of(stack_limit) - kStackGuardBytes;
}

// Whether the stack is what the fault is about, and whether the registers were stacked nonetheless.
bool is_overflow(const std::uint32_t* stacked) {
  const std::uint32_t status = system_register(kCfsr);
  constexpr std::uint32_t kStackingFailed = 1U << 4 | 1U << 12, kStackLimit = 1U << 20;
  constexpr std::uint32_t kMmfarValid = 1U << 7, kBfarValid = 1U << 15;
  return stacked < stack_limit || (status & (kStackingFailed | kStackLimit)) != 0U ||
         ((status & kMmfarValid) != 0U && below_stack(system_register(kMmfar))) ||
         ((status & kBfarValid) != 0U && below_stack(system_register(kBfar)));
}
bool is_stacked(const std::uint32_t* stacked) {
  constexpr std::uint32_t kStackingFailed = 1U << 4 | 1U << 12, kStackLimit = 1U << 20;
  const std::uint32_t status = system_register(kCfsr);
  // At its limit the stack pointer stays, and nothing is written.
  const bool refused = (status & kStackLimit) != 0U && stacked == stack_limit;
  return stacked >= stack_limit && (status & kStackingFailed) == 0U && !refused;
}
#else
// Armv6-M does not tell why: a stack that has come this close to its end has overflowed.
constexpr int kNearlyFullWords = 16;
bool is_overflow(const std::uint32_t* stacked) { return stacked < stack_limit + kNearlyFullWords; }
bool is_stacked(const std::uint32_t* stacked) { return stacked >= stack_limit; }
#endif

// Four words a line, each behind its name.
template <int count>
void print_words(const char* const (&names)[count], const std::uint32_t* words) {
  port::Line line;
  for (int i = 0; i < count; ++i) {
    line.add(names[i]);
    line.add(port::hex8(words[i]));
    if (i % 4 == 3) line.add('\n');
  }
}

}  // namespace

extern "C" {

// Enters with the stacked registers in sp. After an overflow there is no stack left to report on, so the
// report starts again at the top; nothing returns to what it overwrites. The main stack is the only one this
// start-up uses.
[[gnu::naked]] void fault_handler() {
  asm volatile(
      ".syntax unified     \n"
      "mov  r0, sp         \n"
      "ldr  r1, =stack_limit + 512 \n"
      "cmp  r0, r1         \n"
      "bhs  1f             \n"
      "ldr  r1, =stack_top \n"
      "mov  sp, r1         \n"
      "1:                  \n"
      "ldr  r1, =report_fault \n"
      "bx   r1             \n"
      ".ltorg              \n");
}

// A program that uses one of these exceptions defines its handler; to the others it is a fault too.
[[gnu::weak, gnu::nothrow, gnu::alias("fault_handler")]] void svc_handler();
[[gnu::weak, gnu::nothrow, gnu::alias("fault_handler")]] void pendsv_handler();
[[gnu::weak, gnu::nothrow, gnu::alias("fault_handler")]] void systick_handler();

[[noreturn, gnu::used]] void report_fault(const std::uint32_t* stacked) {
  std::uint32_t exception;
  asm volatile("mrs %0, ipsr" : "=r"(exception));
  port::print("\nfault: exception ", exception, " on ", port::name(), '\n');

  if (is_overflow(stacked)) {
    port::print("  stack overflow: sp ", port::hex8(address_of(stacked)), " of a stack that ends at ",
                port::hex8(address_of(stack_limit)), '\n');
  }
  if (is_stacked(stacked)) {
    static constexpr const char* kNames[] = {"  r0 ",  "  r1 ", "  r2 ", "  r3 ",
                                             "  r12 ", "  lr ", "  pc ", "  xpsr "};
    print_words(kNames, stacked);
  } else {
    port::print("  no room was left to save the registers\n");
  }
#if __ARM_ARCH_ISA_THUMB >= 2
  static constexpr const char* kNames[] = {"  cfsr ", "  hfsr ", "  mmfar ", "  bfar "};
  const std::uint32_t status[] = {system_register(kCfsr), system_register(kHfsr), system_register(kMmfar),
                                  system_register(kBfar)};
  print_words(kNames, status);
#endif
  port::exit(port::kFaultExitCode);
}
}
