// A small training for tests of journals, and memory as a sink.
#pragma once

#include <attune/attune.hpp>

#include <cstring>
#include <span>

namespace journaled {

using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 2>;
using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;
inline constexpr Trainer::Options kOptions{.learning_rate = 0.05f};

/// The data of a number.
inline attune::Status load(std::uint32_t number, Sequence& sequence) {
  attune::Rng rng(number);
  for (float& value : sequence.x.values) value = rng.uniform(-1.0f, 1.0f);
  for (float& value : sequence.target.values) value = rng.uniform(-1.0f, 1.0f);
  return number < 1000 ? attune::Status::kOk : attune::Status::kNothingStored;
}
inline void start(Trainer& trainer, std::uint32_t number) {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(number));
}

/// A sink in memory, with room for `kRoom` bytes.
struct Memory {
  static constexpr std::size_t kRoom = 6000;
  std::byte bytes[kRoom];
  std::size_t size = 0, calls = 0;

  void operator()(const char* more, std::size_t count) {
    ++calls;
    count = count < kRoom - size ? count : kRoom - size;
    std::memcpy(bytes + size, more, count);
    size += count;
  }
  void clear() { size = calls = 0; }
  [[nodiscard]] std::span<const std::byte> all() const { return {bytes, size}; }
};

/// A step with two sequences by number.
template <class Journal>
bool step(Journal& journal, std::uint32_t number) {
  Sequence sequence;
  for (std::uint32_t i = 0; i < 2; ++i) {
    (void)load(2 * number + i, sequence);
    if (!journal.accumulate(2 * number + i, sequence.x, sequence.target).ok()) return false;
  }
  return journal.update(kOptions).ok();
}

/// Each kind of event once: started, steps, a discard, a sequence byte by byte, a saved state, a reset behind
/// a step more.
inline bool train(Trainer& trainer, Memory& memory) {
  start(trainer, 7);
  attune::TrainingJournal journal(trainer, memory, {.hash_every = 2, .base_crc = 0x1234});
  journal.started(7);
  bool done = step(journal, 0) && step(journal, 1);
  Sequence sequence;
  (void)load(50, sequence);
  done = done && journal.accumulate(50, sequence.x, sequence.target).ok();
  journal.discard();
  done = done && journal.accumulate(sequence).ok() &&
         journal.update_incomplete(kOptions, attune::GradientClipping{0.5f}).ok();
  journal.saving();
  const Trainer::State saved = trainer.state();
  done = done && step(journal, 3) && trainer.resume(saved) == attune::Status::kOk;  // a reset
  attune::TrainingJournal behind(trainer, memory, {.hash_every = 2, .base_crc = 0x1234});
  behind.resumed();
  done = done && step(behind, 3) && step(behind, 4);
  behind.write_hash();
  return done && behind.status() == attune::Status::kOk;
}

}  // namespace journaled
