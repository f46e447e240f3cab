// The classifier: a window is a sequence of 32 samples, a sample a token of three axes.
#pragma once

#include <algorithm>

#include <attune/attune.hpp>

#include "machine.hpp"

namespace monitor {

inline constexpr int kWidth = 16;
inline constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kSamples, .d_model = kWidth, .num_heads = 2},
    .d_ff = 2 * kWidth,
    .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};
using Encoder = attune::EncoderLayer<kEncoder>;

template <class Body>
using Around = attune::Sequential<attune::Linear<attune::LinearShape{kSamples, kAxes, kWidth}>,
                                  attune::SinusoidalPositions<attune::PositionShape{kSamples, kWidth}>, Body,
                                  attune::Pooling<attune::PoolingShape{kSamples, kWidth}>,
                                  attune::Linear<attune::LinearShape{1, kWidth, kConditions}>>;
/// What is trained on a PC: all of it.
using Base = Around<Encoder>;
using Window = Base::Input;
using Logits = Base::Output;

[[nodiscard]] inline int most_likely(const Logits& logits) {
  return static_cast<int>(std::max_element(logits.values, logits.values + kConditions) - logits.values);
}

}  // namespace monitor
