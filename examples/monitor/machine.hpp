// A machine that does not exist, and the sensor on it: three axes of vibration at 1 kHz, in g. Four
// conditions change every few windows. While it is in use its speed and the sensor's mounting drift away from
// how it left the factory. What it does depends on the seed and on the number of the window alone.
//
// Orders of the shaft's speed as vibration analysts read them: imbalance is 1x in the plane of rotation, a
// bearing rings with every ball that passes a dent, looseness has halves and multiples.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <attune/core/rng.hpp>

namespace monitor {

inline constexpr int kHertz = 1000;  // samples a second
inline constexpr int kSamples = 32;  // of a window
inline constexpr int kAxes = 3;      // x and y in the plane of rotation, z along the shaft
inline constexpr int kConditions = 4;
inline constexpr const char* kNames[kConditions] = {"healthy", "imbalance", "bearing", "looseness"};

/// Seeds from here on are of machines that the training on a PC has not seen.
inline constexpr std::uint64_t kInTheField = 100;

/// How far machine and mounting are from the factory: 0 in the factory, 1 at the end.
struct Drift {
  float speed = 0, tilt = 0, gain = 0, noise = 0;
};

/// Speed and noise change all the time, the sensor is knocked out of place once.
inline Drift drift_at(int window, int windows) {
  const float age = static_cast<float>(window) / static_cast<float>(windows);
  const auto between = [age](float begin, float end) {
    return std::clamp((age - begin) / (end - begin), 0.0f, 1.0f);
  };
  return {.speed = between(0.1f, 0.9f),
          .tilt = between(0.3f, 0.35f),
          .gain = between(0.5f, 0.8f),
          .noise = between(0.2f, 1.0f)};
}

/// sin(2π · phase / 2³²), to 2e-4.
inline float sine(std::uint32_t phase) {
  float quarters = static_cast<float>(static_cast<std::int32_t>(phase)) * (1.0f / 1073741824.0f);  // [-2, 2]
  if (quarters > 1) quarters = 2 - quarters;
  if (quarters < -1) quarters = -2 - quarters;
  const float square = quarters * quarters;
  return quarters * (1.5706268f - square * (0.6432292f - square * 0.0727102f));
}

/// One window after the other, from any on.
class Machine {
 public:
  explicit Machine(std::uint64_t seed) : seed_(seed) {}

  /// From a window on, the shaft rubs on its housing in one of eight stretches of eight windows. The factory
  /// has never seen that.
  void rub_from(int window) { rubs_from_ = window; }
  [[nodiscard]] bool rubs(int window) const {
    return window >= rubs_from_ && of(window / 8, 3).next() >> 29 == 0;
  }

  /// What is wrong with the machine in a window: the same for eight of them.
  [[nodiscard]] int condition(int window) const { return static_cast<int>(of(window / 8, 1).next() >> 30); }

  /// Goes to the first sample of a window.
  void start(int window, const Drift& drift) {
    random_ = of(window, 2);
    condition_ = condition(window);
    rubs_now_ = rubs(window);
    drift_ = drift;
    const float hertz = random_.uniform(24.0f, 28.0f) * (1 + 0.4f * drift.speed);
    step_ = static_cast<std::uint32_t>(hertz * (4294967296.0f / kHertz));
    phase_ = random_.next();
    ball_ = random_.next();
    severity_ = random_.uniform(0.7f, 1.3f);
  }

  /// The next sample.
  void next(float* sample) {
    constexpr std::uint32_t kQuarter = 1u << 30;
    const auto order = [this](std::uint32_t number) { return sine(phase_ * number); };
    const float once = condition_ == kImbalance ? 0.3f + 0.6f * severity_ : 0.3f;
    float x = once * sine(phase_ + kQuarter), y = once * order(1), z = 0.1f * order(2);
    if (condition_ == kBearing) {
      const float quiet = static_cast<float>(ball_ >> 8) * (1.0f / 16777216.0f),
                  rings = (1 - quiet) * (1 - quiet);
      const float ring = 1.2f * severity_ * rings * sine(ball_ * 4);
      x += 0.4f * ring, z += ring;
    } else if (condition_ == kLooseness) {
      y += severity_ * (0.4f * order(2) + 0.3f * order(3));
      z += severity_ * 0.4f * sine(phase_ / 2);
    }
    if (rubs_now_ && y > 0.15f) {  // contact: the orbit is cut off, and it grinds
      y = 0.15f;
      x += 1.2f * severity_ * random_.normal(), z += 1.2f * severity_ * random_.normal();
    }
    phase_ += step_;
    ball_ += 3 * step_ + step_ / 2 + step_ / 13;  // 3.58 balls a turn

    // The sensor turns about x and then about z, and its z axis gets weaker.
    const auto angle = static_cast<std::uint32_t>(drift_.tilt * (0.15f * 4294967296.0f));
    const float s = sine(angle), c = sine(angle + kQuarter);
    const float y1 = c * y - s * z, z1 = s * y + c * z;
    const float noise = 0.2f + 0.05f * drift_.noise;
    sample[0] = c * x - s * y1 + noise * random_.normal();
    sample[1] = s * x + c * y1 + noise * random_.normal();
    sample[2] = (1 - 0.3f * drift_.gain) * z1 + 0.2f * drift_.gain + noise * random_.normal();
  }

 private:
  static constexpr int kImbalance = 1, kBearing = 2, kLooseness = 3;

  [[nodiscard]] attune::Rng of(int number, std::uint64_t use) const {
    attune::Rng rng(seed_ + static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u + (use << 40));
    return attune::Rng((static_cast<std::uint64_t>(rng.next()) << 32) | rng.next());
  }

  std::uint64_t seed_;
  attune::Rng random_{0};
  int condition_ = 0, rubs_from_ = std::numeric_limits<int>::max();
  bool rubs_now_ = false;
  Drift drift_;
  std::uint32_t step_ = 0, phase_ = 0, ball_ = 0;
  float severity_ = 1;
};

}  // namespace monitor
