// Training that goes on where it was, whatever cut it short: a FlashStore over the board's own flash holds
// the trainer's state, the random numbers and the step.
//   resume [--steps N] [--save-every N] [--resets N] [--reference 1]
// A line for each state, `began`, `resumed`, `saving` or `saved`, with the step and the parameters' hash.
// With
// --resets the processor is reset that many times, in a save or between two. The end must be that of training
// at one go; --reference does that alone, without flash. Ends with `N passed, N failed`.
#include <attune/attune.hpp>

#include "arguments.hpp"
#include "bare_metal/memory_map.hpp"
#include "console.hpp"
#include "flash.hpp"
#include "port.hpp"
#include "ticks.hpp"

namespace {

using attune::Status;
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError>;

struct Progress {
  attune::Rng rng{7};
  std::uint32_t step = 0, resets = 0;
};

Trainer trainer;
int passed = 0, failed = 0;

void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}

void say(const char* what, const Progress& progress) {
  port::print(what, " step=", progress.step, " hash=", port::hex8(attune::hash_bits(trainer.parameters())),
              '\n');
}

void begin(Progress& progress) {
  progress = {};
  trainer.initialize(attune::XavierUniform{}, attune::Rng(progress.rng));
}

void step(Progress& progress) {
  Layer::Input x;
  for (float& value : x.values) value = progress.rng.uniform(-2.0f, 2.0f);
  expect(trainer.step(x, x, {.learning_rate = 0.01f}).ok(), "a step succeeds");
  ++progress.step;
}

/// The board's flash, with a reset before one of its operations.
class ResettingFlash : public port::Flash {
 public:
  Status program(std::uint32_t at, const void* from, std::size_t bytes) {
    const auto* const units = static_cast<const unsigned char*>(from);
    for (std::size_t done = 0; done < bytes; done += kProgramUnit) {
      count();
      const Status status =
          port::Flash::program(at + static_cast<std::uint32_t>(done), units + done, kProgramUnit);
      if (status != Status::kOk) return status;
    }
    return Status::kOk;
  }
  Status erase(std::uint32_t at) {
    count();
    return port::Flash::erase(at);
  }
  int operations_left = -1;

 private:
  void count() {
    if (operations_left == 0) port::reset();
    if (operations_left > 0) --operations_left;
  }
};

}  // namespace

int main() {
  const auto steps = static_cast<std::uint32_t>(port::argument("--steps", 40));
  const auto save_every = static_cast<std::uint32_t>(port::argument("--save-every", 3));
  const auto resets = static_cast<std::uint32_t>(port::argument("--resets", 0));
  const bool reference = port::argument("--reference", 0) != 0;

  Progress progress;
  if (!reference) {
    expect(reinterpret_cast<std::uintptr_t>(code_region_end) <= port::Flash::kBegin ||
               reinterpret_cast<std::uintptr_t>(code_region_begin) > port::Flash::kBegin,
           "no program reaches into the store");
    ResettingFlash flash;
    attune::FlashStore<ResettingFlash, Trainer::State, Progress> store(flash);
    const Status status = trainer.resume([&](Trainer::State& state) { return store.load(state, progress); });
    if (status == Status::kNothingStored) begin(progress);
    say(status == Status::kOk              ? "resumed"
        : status == Status::kNothingStored ? "began"
                                           : attune::message(status),
        progress);
    expect(status == Status::kOk || status == Status::kNothingStored, "a state is loaded");

    if (progress.resets < resets) {
      ++progress.resets;
      expect(store.save(trainer.state(), progress) == Status::kOk, "a save succeeds");
      // Another place each time: before the next save, or in it, or in one of those behind it.
      step(progress);
      if (progress.resets % 3 == 0) port::reset();
      flash.operations_left = static_cast<int>(progress.resets * progress.resets * 37 % 700);
    }
    while (progress.step < steps) {
      step(progress);
      if (progress.step % save_every != 0 && progress.step != steps) continue;
      say("saving", progress);
      expect(store.save(trainer.state(), progress) == Status::kOk, "a save succeeds");
      say("saved", progress);
    }
  }

  const std::uint32_t resumed = attune::hash_bits(trainer.parameters());
  const std::uint32_t times = progress.resets;
  begin(progress);
  while (progress.step < steps) {
    step(progress);
    if (reference) say("reference", progress);
  }
  if (!reference) {
    expect(attune::hash_bits(trainer.parameters()) == resumed,
           "what was interrupted ends with the bits of what was not");
    expect(times == resets, "as many resets as were asked for");
  }
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}
