// What the tests of ports/rtos share: a sensor, and how well control reproduces it.
#pragma once

#include <attune/attune.hpp>

#include "console.hpp"
#include "port.hpp"
#include "rtos/application.hpp"

inline int passed = 0, failed = 0;

inline void expect(bool holds, const char* expectation) {
  ++(holds ? passed : failed);
  if (!holds) port::print("FAILED ", expectation, '\n');
}

inline int result() {
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 ? 0 : 1;
}

// The test's: what it does after a period of control.
void end_period();

namespace sensor {
inline volatile int periods = 0;
inline float sensed[application::kShape.d_model];
inline float error = 0.0f, first_error = 0.0f, last_error = 0.0f;
}  // namespace sensor

// Four triangles of 8 periods, out of step: every window is a rotation of every other.
void application::read_sensor(float* channels) {
  using namespace sensor;
  for (int i = 0; i < kShape.d_model; ++i) {
    const int phase = (periods + 2 * i) % 8;
    channels[i] = sensed[i] = static_cast<float>(phase < 4 ? phase - 2 : 6 - phase) / 2.0f;
  }
  periods = periods + 1;
}

// Squared error of the newest sample, over the first 16 periods and over the last.
void application::actuate(const Layer::Output& output) {
  using namespace sensor;
  const float* newest = &output.values[(kShape.seq_len - 1) * kShape.d_model];
  for (int i = 0; i < kShape.d_model; ++i) error += (newest[i] - sensed[i]) * (newest[i] - sensed[i]);
  if (periods % 16 == 0) {
    last_error = error;
    if (periods == 16) first_error = error;
    error = 0.0f;
  }
  end_period();
}

inline void expect_trained(std::uint64_t windows) {
  expect(application::trainer.state().steps == windows, "each window that was handed over is trained with");
  expect(sensor::last_error < 0.1f * sensor::first_error,
         "control is better with what was trained meanwhile");
  expect(attune::hash_bits(application::parameters[application::in_use.load()]) ==
             attune::hash_bits(application::trainer.parameters()),
         "control has what was trained last");
}
