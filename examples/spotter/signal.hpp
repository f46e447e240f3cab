// A signal that never ends: phrases of three tones in noise, with silence between them. One phrase is the
// keyword; the others have the same tones in another order, and many differ in the last one alone.
#pragma once

#include <attune/core/rng.hpp>

namespace spotter {

inline constexpr int kBands = 8;

class Signal {
 public:
  explicit Signal(std::uint64_t seed) : rng_(seed) {}

  /// The next token, bands[kBands]; whether the last tone of a keyword sounds.
  bool next(float* bands) {
    while (left_ == 0) begin_part();
    --left_;
    for (int band = 0; band < kBands; ++band) {
      const float distance = static_cast<float>(band) - center_;
      const float tone = strength_ / (1 + 2 * distance * distance);
      bands[band] = tone + 0.15f * rng_.normal();
    }
    return in_keyword_;
  }

 private:
  // A phrase has five parts, tones and the gaps between them, and the silence behind it is the sixth.
  static constexpr int kParts = 6;
  static constexpr int kKeyword[] = {0, 2, 1};

  void begin_part() {
    part_ = (part_ + 1) % kParts;
    if (part_ == 0) draw_phrase();
    const bool sounds = part_ < 5 && part_ % 2 == 0;
    strength_ = sounds ? rng_.uniform(0.8f, 1.3f) : 0.0f;
    center_ = sounds ? 1.0f + 2.5f * static_cast<float>(tones_[part_ / 2]) + rng_.uniform(-0.3f, 0.3f) : 0.0f;
    left_ = sounds ? between(3, 6) : part_ < 5 ? between(0, 2) : between(5, 14);
    in_keyword_ = part_ == 4 && is_keyword_;
  }
  // Every third phrase is the keyword, every third one begins like it.
  void draw_phrase() {
    const std::uint32_t kind = rng_.next() % 3;
    for (int i = 0; i < 3; ++i) tones_[i] = kind < 2 ? kKeyword[i] : between(0, 2);
    if (kind == 1) tones_[2] = 2 * between(0, 1);
    is_keyword_ = tones_[0] == kKeyword[0] && tones_[1] == kKeyword[1] && tones_[2] == kKeyword[2];
  }
  int between(int low, int high) {
    return low + static_cast<int>(rng_.next() % static_cast<std::uint32_t>(high - low + 1));
  }

  attune::Rng rng_;
  int part_ = kParts - 1, left_ = 0;
  int tones_[3] = {};
  float strength_ = 0, center_ = 0;
  bool is_keyword_ = false, in_keyword_ = false;
};

}  // namespace spotter
