// Learning-rate schedules: functions of the step, which counts from 0. Every target gets the same values.
//
//   const auto step = static_cast<std::uint32_t>(trainer.state().steps);  // which resume() restores
//   trainer.update({.learning_rate = schedule(step)});
#pragma once

#include <cstdint>

#include <attune/kernels/simd/elementary.hpp>

namespace ATTUNE_NAMESPACE {

/// The same rate in every step.
struct ConstantSchedule {
  float learning_rate;
  /// The rate.
  [[nodiscard]] constexpr float operator()(std::uint32_t) const { return learning_rate; }
};

/// Rises linearly, peak·(step + 1)/warmup_steps, until it reaches `peak`, then stays there.
struct LinearWarmupSchedule {
  float peak;
  std::uint32_t warmup_steps;
  /// The rate of a step, 0 for the first.
  [[nodiscard]] constexpr float operator()(std::uint32_t step) const {
    if (warmup_steps == 0 || step >= warmup_steps - 1) return peak;
    return peak * (static_cast<float>(step + 1) / static_cast<float>(warmup_steps));
  }
};

/// Linear warm-up to `peak`, then half a cosine down to `last` at `total_steps` (Loshchilov and Hutter, SGDR,
/// 2017, eq. 5, without restarts). The rate stays at `last` from then on.
struct CosineSchedule {
  float peak;
  std::uint32_t total_steps;
  float last = 0.0f;  // the final rate
  std::uint32_t warmup_steps = 0;
  /// The rate of a step, 0 for the first.
  [[nodiscard]] float operator()(std::uint32_t step) const {
    if (step < warmup_steps) return LinearWarmupSchedule{peak, warmup_steps}(step);
    if (step >= total_steps) return last;
    const float progress =
        static_cast<float>(step - warmup_steps) / static_cast<float>(total_steps - warmup_steps);
    return kernels::multiply_add(0.5f * (peak - last), 1.0f + kernels::cosine_pi(progress), last);
  }
};

}  // namespace ATTUNE_NAMESPACE
