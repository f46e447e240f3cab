// What freertos_crew.cpp trains: a small attention layer, on batches of four sequences.
#pragma once

#include <attune/attune.hpp>

namespace crew_application {

inline constexpr attune::AttentionShape kShape{.seq_len = 8, .d_model = 4, .num_heads = 1};
using Layer = attune::MultiHeadAttention<kShape>;
inline constexpr int kBatch = 4;
/// The trainer with the same bits on one core.
using OnOneCore = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, kBatch>;
inline constexpr attune::AdamW::Options kOptions{.learning_rate = 1e-2f};

// The board's: the next batch, and what it does after a step.
void read_batch(OnOneCore::BatchInput& inputs, OnOneCore::BatchTarget& targets);
void end_step(const OnOneCore::State& state, const OnOneCore::Result& result);

}  // namespace crew_application
