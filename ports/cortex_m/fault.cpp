// What a fault leaves behind, as text: the stacked registers and the fault status, then exit with
// kFaultExitCode.
#include "../bare_metal/memory_map.hpp"
#include "../console.hpp"
#include "../port.hpp"
#include "stack_guard.hpp"
#if ATTUNE_SECOND_CORE
#include "second_core.hpp"
#endif

namespace {

// The end of the stack that the registers are on.
const std::uint32_t* limit_of([[maybe_unused]] const std::uint32_t* stacked) {
#if ATTUNE_SECOND_CORE
  if (stacked >= second_stack && stacked < second_stack + kSecondStackWords) {
    return second_stack + kSecondStackGuardWords;
  }
#endif
  return stack_limit;
}

std::uint32_t address_of(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer));
}

#if __ARM_ARCH_ISA_THUMB >= 2
std::uint32_t system_register(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
constexpr std::uintptr_t kCfsr = 0xE000ED28, kHfsr = 0xE000ED2C, kMmfar = 0xE000ED34, kBfar = 0xE000ED38;

bool below_stack(std::uint32_t address, const std::uint32_t* limit) {
  return address < address_of(limit) && address >= address_of(limit) - kStackGuardBytes;
}

// An instruction of a coprocessor that is off, or that is not there: floats, since firmware uses no other.
bool is_without_fpu() {
  constexpr std::uint32_t kNoCoprocessor = 1U << 19;
  return (system_register(kCfsr) & kNoCoprocessor) != 0U;
}

// Whether the stack is what the fault is about, and whether the registers were stacked nonetheless.
bool is_overflow(const std::uint32_t* stacked, const std::uint32_t* limit) {
  const std::uint32_t status = system_register(kCfsr);
  constexpr std::uint32_t kStackingFailed = 1U << 4 | 1U << 12, kStackLimit = 1U << 20;
  constexpr std::uint32_t kMmfarValid = 1U << 7, kBfarValid = 1U << 15;
  return stacked < limit || (status & (kStackingFailed | kStackLimit)) != 0U ||
         ((status & kMmfarValid) != 0U && below_stack(system_register(kMmfar), limit)) ||
         ((status & kBfarValid) != 0U && below_stack(system_register(kBfar), limit));
}
bool is_stacked(const std::uint32_t* stacked, const std::uint32_t* limit) {
  constexpr std::uint32_t kStackingFailed = 1U << 4 | 1U << 12, kStackLimit = 1U << 20;
  const std::uint32_t status = system_register(kCfsr);
  // At its limit the stack pointer stays, and nothing is written.
  const bool refused = (status & kStackLimit) != 0U && stacked == limit;
  return stacked >= limit && (status & kStackingFailed) == 0U && !refused;
}
#else
// Armv6-M does not tell why: a stack that has come this close to its end has overflowed.
constexpr int kNearlyFullWords = 16;
bool is_overflow(const std::uint32_t* stacked, const std::uint32_t* limit) {
  return stacked < limit + kNearlyFullWords;
}
bool is_stacked(const std::uint32_t* stacked, const std::uint32_t* limit) { return stacked >= limit; }
bool is_without_fpu() { return false; }
#endif

// Four words a line, each behind its name. `names` stand one behind the other, each with its end.
[[gnu::noinline]] void add_words(port::Line& line, const char* names, const std::uint32_t* words, int count) {
  for (int i = 0; i < count; ++i) {
    line.add(names);
    while (*names++ != '\0') {
    }
    line.add(port::hex8(words[i]));
    if (i % 4 == 3) line.add('\n');
  }
}

// The number of an exception. Decimals of any number would be five times the code.
void add_exception(port::Line& line, std::uint32_t number) {
  char digits[5] = {};
  char* first = &digits[4];
  do {
    const std::uint32_t tens = number * 205U >> 11;  // number / 10, below 1029
    *--first = static_cast<char>('0' + (number - 10U * tens));
    number = tens;
  } while (number != 0U);
  line.add(first);
}

}  // namespace

extern "C" {

// Enters with the stacked registers in sp. After an overflow there is no stack left to report on, so the
// report starts again at the top; nothing returns to what it overwrites. A second core has its own handler
// (second_core.cpp).
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
  const std::uint32_t* const limit = limit_of(stacked);
  {
    port::Line line;
    line.add("\nfault: exception ");
    add_exception(line, exception);
    line.add(" on ");
    line.add(port::name());
    if (limit != stack_limit) line.add(", second core");
    if (is_overflow(stacked, limit)) {
      line.add("\n  stack overflow: sp ");
      line.add(port::hex8(address_of(stacked)));
      line.add(" of a stack that ends at ");
      line.add(port::hex8(address_of(limit)));
    }
    if (is_without_fpu()) line.add("\n  no FPU: this core has none, or CPACR has it off");
    line.add('\n');
    if (is_stacked(stacked, limit)) {
      add_words(line, "  r0 \0  r1 \0  r2 \0  r3 \0  r12 \0  lr \0  pc \0  xpsr ", stacked, 8);
    } else {
      line.add("  no room was left to save the registers\n");
    }
#if __ARM_ARCH_ISA_THUMB >= 2
    const std::uint32_t status[] = {system_register(kCfsr), system_register(kHfsr), system_register(kMmfar),
                                    system_register(kBfar)};
    add_words(line, "  cfsr \0  hfsr \0  mmfar \0  bfar ", status, 4);
#endif
  }
  port::exit(port::kFaultExitCode);
}
}
