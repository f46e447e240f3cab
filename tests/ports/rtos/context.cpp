// The stack of a FreeRTOS task, as ports/rtos/freertos_stack.hpp counts it, is enough and not more than
// needed: a task on a stack of its own, with a kernel's switch in it. The kernel is a stand-in: PendSV saves
// what FreeRTOS's ports for a Cortex-M3, M4F and M33 save, spoils it and takes it back. As the real kernel it
// starts below the last word, aligned to 8 bytes, and with configCHECK_FOR_STACK_OVERFLOW 2 the last four
// words must keep their pattern. Ends with `N passed, N failed`.
#include <attune/attune.hpp>

#include <train_repeatedly_stack.hpp>

#include "console.hpp"
#include "port.hpp"
#include "rtos/freertos_stack.hpp"
#include "ticks.hpp"

namespace {

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 8, .d_model = 4, .num_heads = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError>;
Trainer trainer;
Layer::Input x;
int passed = 0, failed = 0;

void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}

#if __ARM_ARCH >= 8
constexpr bool kStackLimit = true;
#else
constexpr bool kStackLimit = false;
#endif
constexpr int kPatternBytes = 16, kMaxWords = 512;
constexpr std::uint32_t kPattern = 0xA5A5A5A5U;  // tskSTACK_FILL_BYTE
constexpr int kGuardWords = 64;
alignas(8) std::uint32_t memory[kGuardWords + kMaxWords + 1];

void request_switch() { *reinterpret_cast<volatile std::uint32_t*>(0xE000ED04) = 1U << 28; }

}  // namespace

extern "C" {

volatile std::uint32_t switches = 0, extra_words = 0;
bool all_ok = true;

void train_repeatedly() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  for (int step = 0; step < 100; ++step) {
    all_ok = trainer.step(x, x, {.learning_rate = 1e-2f}).ok() && all_ok;
  }
}

// Takes kTaskBytes, an odd number of words, with floats in use, and is switched away from there.
constexpr int kTaskBytes = 92;
[[gnu::naked]] void take_all() {
  asm volatile(
      "sub  sp, sp, %[bytes] \n"
#if defined(__ARM_FP)
      "vmov s0, r0          \n"
#endif
      "ldr  r0, =0xE000ED04 \n"
      "mov  r1, #1 << 28    \n"
      "str  r1, [r0]        \n"
      "dsb                  \n"
      "isb                  \n"
      "add  sp, sp, %[bytes] \n"
      "bx   lr              \n"
      ".ltorg               \n" ::[bytes] "i"(kTaskBytes));
}

// Calls a function in thread mode on the process stack.
[[gnu::naked]] void call_on(void (*)(), void*) {
  asm volatile(
      "push {r4, lr}        \n"
      "msr  psp, r1         \n"
      "mrs  r4, control     \n"
      "orr  r4, r4, #2      \n"
      "msr  control, r4     \n"
      "isb                  \n"
      "blx  r0              \n"
      "mrs  r4, control     \n"
      "bic  r4, r4, #2      \n"
      "msr  control, r4     \n"
      "isb                  \n"
      "pop  {r4, pc}        \n");
}

[[gnu::naked]] void pendsv_handler() {
  asm volatile(
      "tst  lr, #4          \n"  // of the main stack: nothing to switch
      "it   eq              \n"
      "bxeq lr              \n"
      "mrs  r0, psp         \n"
#if defined(__ARM_FP)
      "tst  lr, #16         \n"  // the FPU is in use
      "it   eq              \n"
      "vstmdbeq r0!, {s16-s31} \n"
#endif
#if __ARM_ARCH >= 8
      "mrs  r2, psplim      \n"
      "mov  r3, lr          \n"
      "stmdb r0!, {r2-r11}  \n"
#else
      "stmdb r0!, {r4-r11, lr} \n"
#endif
      "ldr  r1, =extra_words \n"  // of TrustZone and a key
      "ldr  r1, [r1]        \n"
      "1: cbz r1, 2f        \n"
      "str  r1, [r0, #-4]!  \n"
      "subs r1, r1, #1      \n"
      "b    1b              \n"
      "2:                   \n"
      "mov  r4, r0          \n"
      "mov  r5, r0          \n"
      "mov  r6, r0          \n"
      "mov  r7, r0          \n"
      "mov  r8, r0          \n"
      "mov  r9, r0          \n"
      "mov  r10, r0         \n"
      "mov  r11, r0         \n"
#if defined(__ARM_FP)
      "vmov s0, r0          \n"
      "vmov s16, r0         \n"
      "vmov s23, r0         \n"
      "vmov s31, r0         \n"
#endif
      "ldr  r1, =switches   \n"
      "ldr  r2, [r1]        \n"
      "add  r2, r2, #1      \n"
      "str  r2, [r1]        \n"
      "ldr  r1, =extra_words \n"
      "ldr  r1, [r1]        \n"
      "add  r0, r0, r1, lsl #2 \n"
#if __ARM_ARCH >= 8
      "ldmia r0!, {r2-r11}  \n"
      "msr  psplim, r2      \n"
      "mov  lr, r3          \n"
#else
      "ldmia r0!, {r4-r11, lr} \n"
#endif
#if defined(__ARM_FP)
      "tst  lr, #16         \n"
      "it   eq              \n"
      "vldmiaeq r0!, {s16-s31} \n"
#endif
      "msr  psp, r0         \n"
      "bx   lr              \n"
      ".ltorg               \n");
}
}

namespace {

// A static array of a task, behind a guard: 8-byte aligned, or 4 bytes further.
std::uint32_t* stack_of(bool odd) { return memory + kGuardWords + (odd ? 1 : 0); }
void paint() {
  for (std::uint32_t& part : memory) part = kPattern;
}
// Runs a function as a task of that many words, and returns the bytes at the end that nobody has written.
int untouched_bytes(void (*task)(), std::uint32_t* stack, std::size_t words) {
  const auto top = reinterpret_cast<std::uintptr_t>(stack + words - 1) & ~std::uintptr_t{7};
  call_on(task, reinterpret_cast<void*>(top));
  int untouched = -kGuardWords;
  while (untouched < kMaxWords && stack[untouched] == kPattern) ++untouched;
  return 4 * untouched;
}

void check_sum(const freertos::Kernel& kernel) {
  const std::size_t words = (kTaskBytes + freertos::context_bytes(kernel) + 3) / 4;
  int least = 4 * kMaxWords;
  for (const std::size_t more : {0, 1}) {
    for (const bool odd : {false, true}) {
      paint();
      const int untouched = untouched_bytes(take_all, stack_of(odd), words + more);
      if (untouched < least) least = untouched;
    }
  }
  expect(least >= kPatternBytes, "the kernel's pattern at the end of the stack stays");
  expect(least == kPatternBytes, "no word is counted that nobody needs");
}

}  // namespace

int main() {
  attune::Rng rng(2);
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  train_repeatedly();
  const std::uint32_t alone = attune::hash_bits(trainer.parameters());

  const std::uint32_t at_first = switches;
  freertos::Kernel kernel = freertos::kKernel;
  expect(kernel.stack_limit == kStackLimit && kernel.overflow_check == 2, "the kernel is this processor's");
  check_sum(kernel);
  extra_words = 1;
  kernel.trustzone = true;
  check_sum(kernel);
  extra_words = 5;
  kernel.pac = true;
  check_sum(kernel);
  extra_words = 0;
  expect(switches - at_first == 12, "every task was switched away from");

  constexpr std::size_t kWords = freertos::stack_words(train_repeatedly_stack_bytes);
  static_assert(kWords < kMaxWords);
  paint();
  port::start_ticks(1000, request_switch);
  // An emulator may be through with it before the first tick.
  int untouched = 4 * kMaxWords;
  for (int times = 0; times < 1000 && switches <= 100; ++times) {
    untouched = untouched_bytes(train_repeatedly, stack_of(true), kWords);
    expect(attune::hash_bits(trainer.parameters()) == alone,
           "training has the same bits with switches in it");
  }
  expect(all_ok, "every step succeeds");
  expect(switches > 100, "the kernel switches while the program trains");
  expect(untouched >= kPatternBytes, "the bound and a context are enough stack");
  expect(static_cast<std::size_t>(untouched) < 4 * kWords - freertos::kContextBytes + kPatternBytes,
         "the stack was in use");
  port::print("used ", 4 * kWords - static_cast<std::size_t>(untouched), " of ", 4 * kWords, '\n');
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}
