// What runs on these pages: a control loop that senses and infers once a millisecond, and training below it,
// from what was sensed. Control interrupts training anywhere and runs to its end; that one-sidedness is all
// that keeps the two apart, with no lock.
#pragma once

#include <atomic>
#include <cstring>

#include <attune/attune.hpp>

namespace application {

inline constexpr attune::AttentionShape kShape{.seq_len = 8, .d_model = 4, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError>;

// The board's.
void read_sensor(float* channels);  // kShape.d_model of them
void actuate(const Layer::Output& output);

// Training's own, and static: the stacks stay small.
inline Trainer trainer;

// Control infers with one of the two, training fills the other and then exchanges them.
inline Layer::Parameters parameters[2];
inline std::atomic<unsigned> in_use{0};

// Control writes it while it is empty, training reads it while it is full.
inline Layer::Input handed_over;
inline std::atomic<bool> full{false};

inline void publish() {
  const unsigned spare = 1U - in_use.load();
  parameters[spare] = trainer.parameters();
  in_use.store(spare);
}

/// Before both.
inline void begin() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  publish();
}

/// One period. Whether there is now something to train with.
inline bool control() {
  static Layer::Input window;
  static Layer::Output output;
  static Layer::InferenceScratch scratch;
  static unsigned samples = 0;
  constexpr auto kKept = (kShape.seq_len - 1) * kShape.d_model;
  std::memmove(&window.values[0], &window.values[kShape.d_model], kKept * sizeof(float));
  read_sensor(&window.values[kKept]);
  Layer::forward(parameters[in_use.load()], window, output, scratch);
  actuate(output);
  if (++samples % kShape.seq_len != 0 || full.load()) return false;
  handed_over = window;
  full.store(true);
  return true;
}

/// One step, if there is something to train with; whether there was.
inline bool train() {
  if (!full.load()) return false;
  const auto result = trainer.step(handed_over, handed_over, {.learning_rate = 1e-2f});
  full.store(false);
  if (result.ok()) publish();
  return true;
}

}  // namespace application
