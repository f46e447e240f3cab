// A Cortex-M program's own handlers: of external interrupts, by name or in a table of its own, of SVC, and of
// PendSV, in which a control loop infers in the middle of training. Training ends with the same bits as
// without it. Ends with `N passed, N failed`.
//   ATTUNE_TEST_TABLE=1  the program's own table of vectors instead of handlers by name
#include <cstring>

#include <attune/attune.hpp>

#include "console.hpp"
#include "port.hpp"
#include "ticks.hpp"

namespace {

volatile std::uint32_t& at(std::uintptr_t address) {
  return *reinterpret_cast<volatile std::uint32_t*>(address);
}
constexpr std::uintptr_t kEnable = 0xE000E100, kPending = 0xE000E200, kInterruptState = 0xE000ED04,
                         kPriorities = 0xE000ED20;

void raise(int interrupt) {
  at(kEnable) = 1U << interrupt;
  at(kPending) = 1U << interrupt;
  asm volatile("dsb\n isb" ::: "memory");
}

int passed = 0, failed = 0;
void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}

volatile std::uint32_t handled = 0, exception = 0, services = 0;
void note_exception() {
  std::uint32_t number;
  asm volatile("mrs %0, ipsr" : "=r"(number));
  exception = number;
  handled = handled + 1;
}

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError>;

Trainer trainer;
Layer::Parameters controller;
Layer::InferenceScratch scratch;
Layer::Input sensed;
Layer::Output first_control, control;
volatile std::uint32_t controls = 0, different = 0;

std::uint32_t train() {
  attune::Rng rng(7);
  trainer.initialize(attune::XavierUniform{}, attune::Rng(rng));
  for (int step = 0; step < 50; ++step) {
    Layer::Input x;
    for (float& value : x.values) value = rng.uniform(-2.0f, 2.0f);
    expect(trainer.step(x, x, {.learning_rate = 0.01f}).ok(), "a step succeeds");
  }
  return attune::hash_bits(trainer.parameters());
}

void request_control() { at(kInterruptState) = 1U << 28; }  // PENDSVSET

}  // namespace

extern "C" {

void svc_handler() { services = services + 1; }

// The control loop: above training, below the tick.
void pendsv_handler() {
  Layer::forward(controller, sensed, control, scratch);
  if (std::memcmp(&control, &first_control, sizeof control) != 0) different = different + 1;
  controls = controls + 1;
}

#if ATTUNE_TEST_TABLE
[[gnu::section(".vectors.interrupts"), gnu::used]] void (*const interrupt_vectors[])() = {
    nullptr, nullptr, nullptr, nullptr, nullptr, note_exception};
#else
void interrupt_5_handler() { note_exception(); }
#endif
}

int main() {
  raise(5);
  expect(handled == 1 && exception == 16 + 5, "an interrupt reaches its handler");
  asm volatile("svc #0" ::: "memory");
  expect(services == 1, "a supervisor call reaches its handler");

  const std::uint32_t undisturbed = train();

  controller = trainer.parameters();
  attune::Rng rng(3);
  for (float& value : sensed.values) value = rng.uniform(-2.0f, 2.0f);
  Layer::forward(controller, sensed, first_control, scratch);
  at(kPriorities) = 0xC0U << 16 | 0x40U << 24;  // of PendSV the lowest, of SysTick a higher one
  port::start_ticks(1000, request_control);
  // An emulator may be through with it before the first tick.
  for (int times = 0; times < 1000 && controls <= 20; ++times)
    expect(train() == undisturbed, "training has the same bits with a control loop above it");
  expect(controls > 20, "the control loop runs while the program trains");
  expect(different == 0, "control has the same bits in the middle of training");

  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}
