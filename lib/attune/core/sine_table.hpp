// Sines and cosines of positions. The compiler computes them, and firmware has them in flash; large tables on
// a PC are computed at startup. Equal everywhere: double arithmetic by IEEE 754, on every target.
#pragma once

#include <cstdint>

#include <attune/core/tensor.hpp>

namespace ATTUNE_NAMESPACE {

/// Slower rotation for sequences longer than a model was first trained for (Llama 3's `rope_scaling`;
/// Grattafiori et al., "The Llama 3 Herd of Models", 2024). Frequencies with fewer than
/// `low_frequency_factor` turns in `original_length` positions are divided by `factor`. Frequencies with more
/// than `high_frequency_factor` turns are unchanged; frequencies in between are interpolated.
struct RotaryScaling {
  double factor = 1;                 // 1: none
  double low_frequency_factor = 1;   // turns; below, frequencies are divided
  double high_frequency_factor = 4;  // turns; above, frequencies are unchanged
  int original_length = 8192;        // positions in the first training
};

}  // namespace ATTUNE_NAMESPACE

namespace ATTUNE_NAMESPACE::detail {

/// cos and sin of one angle.
struct CosineSine {
  double cosine;
  double sine;
};

/// cos and sin of an angle in [0, 1e6], to 1e-15 absolute: Taylor's series on the remainder below π/4.
[[nodiscard]] constexpr CosineSine cosine_sine(double angle) {
  // π/2 in two parts. The first has 33 bits, so its small multiples are exact.
  constexpr double kHalfPiHigh = 0x1.921FB544p+0, kHalfPiLow = 0x1.0B4611A626331p-34;
  const auto quarter = static_cast<long long>(angle / (kHalfPiHigh + kHalfPiLow) + 0.5);
  const auto turns = static_cast<double>(quarter);
  const double r = (angle - turns * kHalfPiHigh) - turns * kHalfPiLow;
  const double square = r * r;
  double cosine = 1, sine = 1;  // sine: sin r / r
  for (int n = 18; n >= 2; n -= 2) {
    cosine = 1 - square / (n * (n - 1)) * cosine;
    sine = 1 - square / (n * (n + 1)) * sine;
  }
  sine *= r;
  switch (quarter % 4) {
    case 0:
      return {cosine, sine};
    case 1:
      return {-sine, cosine};
    case 2:
      return {-cosine, -sine};
    default:
      return {sine, -cosine};
  }
}

/// cos and sin of the sum of two angles.
[[nodiscard]] constexpr CosineSine sum_of_angles(const CosineSine& a, const CosineSine& b) {
  return {a.cosine * b.cosine - a.sine * b.sine, a.sine * b.cosine + a.cosine * b.sine};
}

/// base^(−exponent) for a base above 1 and an exponent in [0, 1], to 5e-16 relative.
[[nodiscard]] constexpr double inverse_power(double base, double exponent) {
  constexpr double kLn2 = 0.69314718055994530942;
  double mantissa = base, power = 0;
  for (; mantissa >= 2; mantissa /= 2) power += 1;
  const double s = (mantissa - 1) / (mantissa + 1);  // ln m = 2·(s + s³/3 + s⁵/5 + …)
  double series = 0;
  for (int n = 35; n >= 1; n -= 2) series = series * s * s + 1.0 / n;
  const double x = exponent * (power * kLn2 + 2 * s * series);
  const auto halvings = static_cast<int>(x / kLn2 + 0.5);
  const double r = halvings * kLn2 - x;
  double e = 1;
  for (int n = 16; n >= 1; --n) e = 1 + r / n * e;
  for (int i = 0; i < halvings; ++i) e /= 2;
  return e;
}

/// ω_i = base^(−2i/d), scaled by RotaryScaling.
[[nodiscard]] constexpr double angular_frequency(double base, int d, int i,
                                                 const RotaryScaling& scaling = {}) {
  const double frequency = inverse_power(base, 2.0 * i / d);
  if (scaling.factor == 1) return frequency;
  const double turns = scaling.original_length * frequency / 6.28318530717958647693;
  const double kept =
      (turns - scaling.low_frequency_factor) / (scaling.high_frequency_factor - scaling.low_frequency_factor);
  if (kept >= 1) return frequency;
  return kept <= 0 ? frequency / scaling.factor : (1 - kept) * frequency / scaling.factor + kept * frequency;
}

/// cos and sin of position · ω_i, each [positions, frequencies], for consecutive positions.
template <class Scalar, int kPositions, int kFrequencies>
struct SineTable {
  Tensor<Scalar, kPositions, kFrequencies> cosine;
  Tensor<Scalar, kPositions, kFrequencies> sine;
};

/// Calls visit(t, i, angle) with cos and sin of (first + t)·ω_i. Computes every 16th position directly and
/// adds angles in between, which loses at most 16 roundings.
template <int kPositions, int kFrequencies, class Visit>
constexpr void for_each_angle(double base, int d, int first, const Visit& visit,
                              const RotaryScaling& scaling = {}) {
  for (int i = 0; i < kFrequencies; ++i) {
    const double frequency = angular_frequency(base, d, i, scaling);
    const CosineSine step = cosine_sine(frequency);
    CosineSine at{};
    for (int position = first / 16 * 16; position < first + kPositions; ++position) {
      if (position % 16 == 0) {
        at = cosine_sine(position * frequency);
      } else {
        at = sum_of_angles(at, step);
      }
      if (position >= first) visit(position - first, i, at);
    }
  }
}

/// Fills a table of angles, starting at position `first`.
template <class Scalar, int kPositions, int kFrequencies>
constexpr void fill(SineTable<Scalar, kPositions, kFrequencies>& table, double base, int d, int first = 0,
                    const RotaryScaling& scaling = {}) {
  for_each_angle<kPositions, kFrequencies>(
      base, d, first,
      [&](int t, int i, const CosineSine& angle) {
        table.cosine.values[t * kFrequencies + i] = static_cast<Scalar>(angle.cosine);
        table.sine.values[t * kFrequencies + i] = static_cast<Scalar>(angle.sine);
      },
      scaling);
}

/// With an operating system, larger tables are filled at startup, as compilers take long for them or give up.
/// Elsewhere tables of any size are in flash, up to kMaxAngles.
#if defined(__unix__) || defined(__APPLE__) || defined(_WIN32) || defined(__EMSCRIPTEN__)
inline constexpr std::int64_t kMaxConstantAngles = 2048, kMaxAngles = std::int64_t{1} << 31;
#else
inline constexpr std::int64_t kMaxAngles = 131'072, kMaxConstantAngles = kMaxAngles;
#endif

/// `value` is the Table filled by Fill::fill: a constant, or filled before main() with the same bits.
/// Initializers of other static objects may not read a table filled before main().
template <class Table, class Fill, bool kConstant>
struct TableOf {
  static constexpr Table value = [] {
    Table table{};
    Fill::fill(table);
    return table;
  }();
};
template <class Table, class Fill>
struct TableOf<Table, Fill, false> {
  struct Filled : Table {
    Filled() { Fill::fill(*this); }
  };
  inline static const Filled value;
};

/// ω_i, and its cos and sin.
template <int kFrequencies>
struct Frequencies {
  double of[std::size_t{kFrequencies}];
  CosineSine step[std::size_t{kFrequencies}];
};
template <int kFrequencies>
[[nodiscard]] consteval Frequencies<kFrequencies> frequencies(double base, int d,
                                                              const RotaryScaling& scaling = {}) {
  Frequencies<kFrequencies> frequencies{};
  for (int i = 0; i < kFrequencies; ++i) {
    frequencies.of[i] = angular_frequency(base, d, i, scaling);
    frequencies.step[i] = cosine_sine(frequencies.of[i]);
  }
  return frequencies;
}

/// Angles of positions beyond a table, at run time, with the same bits: each position follows from the
/// position before. Initially zeros: no position yet.
template <int kFrequencies>
struct AnglesOfPosition {
  CosineSine of[std::size_t{kFrequencies}];
  std::uint64_t next;  // one more than the current position

  [[gnu::noinline]] void move_to(std::uint64_t position, const Frequencies<kFrequencies>& frequencies) {
    if (position + 1 == next) return;
    const auto added = position % 16;
    const bool follows = position == next && added != 0;
    for (int i = 0; i < kFrequencies; ++i) {
      if (!follows) of[i] = cosine_sine(static_cast<double>(position - added) * frequencies.of[i]);
      for (auto n = follows ? 1 : added; n > 0; --n) of[i] = sum_of_angles(of[i], frequencies.step[i]);
    }
    next = position + 1;
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
