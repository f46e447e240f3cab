// Training on a stack of its own with a kernel's switch in it, a thousand times a second: as much as
// attune_stack_bound says and a context, as ports/rtos/README.md counts it, is enough. PendSV saves what
// FreeRTOS's port for an M4F or M33 saves, spoils it and takes it back. Ends with `N passed, N failed`.
#include <attune/attune.hpp>

#include <train_repeatedly_stack.hpp>

#include "console.hpp"
#include "port.hpp"
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

#if defined(__ARM_FP)
constexpr std::size_t kProcessorBytes = 108, kKernelBytes = 36 + 64;
#else
constexpr std::size_t kProcessorBytes = 36, kKernelBytes = 36;
#endif
constexpr std::size_t kStackBytes =
    (train_repeatedly_stack_bytes + kProcessorBytes + kKernelBytes + 7) / 8 * 8;
constexpr std::size_t kGuardBytes = 512;
constexpr unsigned char kPaint = 0x5A;
alignas(8) unsigned char stack[kGuardBytes + kStackBytes];

void request_switch() { *reinterpret_cast<volatile std::uint32_t*>(0xE000ED04) = 1U << 28; }

}  // namespace

extern "C" {

volatile std::uint32_t switches = 0;
bool all_ok = true;

void train_repeatedly() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  for (int step = 0; step < 100; ++step) {
    all_ok = trainer.step(x, x, {.learning_rate = 1e-2f}).ok() && all_ok;
  }
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
      "stmdb r0!, {r4-r11, lr} \n"
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
      "ldmia r0!, {r4-r11, lr} \n"
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

int main() {
  attune::Rng rng(2);
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  train_repeatedly();
  const std::uint32_t alone = attune::hash_bits(trainer.parameters());

  for (unsigned char& byte : stack) byte = kPaint;
  port::start_ticks(1000, request_switch);
  // An emulator may be through with it before the first tick.
  for (int times = 0; times < 1000 && switches <= 100; ++times) {
    call_on(train_repeatedly, stack + sizeof stack);
    expect(attune::hash_bits(trainer.parameters()) == alone,
           "training has the same bits with switches in it");
  }
  expect(all_ok, "every step succeeds");
  expect(switches > 100, "the kernel switches while the program trains");
  std::size_t untouched = 0;
  while (untouched < sizeof stack && stack[untouched] == kPaint) ++untouched;
  expect(untouched >= kGuardBytes, "the bound and a context are enough stack");
  expect(sizeof stack - untouched > kProcessorBytes + kKernelBytes, "the stack was in use");
  port::print("used ", sizeof stack - untouched, " of ", kStackBytes, '\n');
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}
