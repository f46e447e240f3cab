// Images as the model takes them, and the order in which training sees them.
#pragma once

#include <iterator>
#include <numeric>

#include "model.hpp"
#include "packed_images.hpp"

namespace digits {

using Image = Model::Input;

/// Pixels from 0 to 1.
inline void unpack(const PackedImage& packed, Image& image) {
  std::uint64_t bits = 0;
  int available = 0;
  const std::uint32_t* word = packed.words;
  for (float& pixel : image.values) {
    if (available < 5) {
      bits |= std::uint64_t{*word++} << available;
      available += 32;
    }
    pixel = static_cast<float>(bits & 31U) * (1.0f / 16);
    bits >>= 5;
    available -= 5;
  }
}

/// Moves an image down and to the right, and slants it: each row goes `slant` further than the one above, the
/// middle not at all. Between pixels it is interpolated; what comes in from outside is empty.
inline void move(Image& image, float down, float right, float slant) {
  const Image before = image;
  const auto pixel = [&before](int i, int j) {
    return i >= 0 && i < kRows && j >= 0 && j < kPixels ? before(i, j) : 0.0f;
  };
  const auto floor = [](float value) { return static_cast<int>(value + kRows) - kRows; };  // from -8
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kPixels; ++j) {
      const float y = static_cast<float>(i) - down;
      const float x = static_cast<float>(j) - right - slant * (static_cast<float>(i) - 0.5f * (kRows - 1));
      const int row = floor(y), column = floor(x);
      const float below = y - static_cast<float>(row), behind = x - static_cast<float>(column);
      const float upper = (1 - behind) * pixel(row, column) + behind * pixel(row, column + 1);
      const float lower = (1 - behind) * pixel(row + 1, column) + behind * pixel(row + 1, column + 1);
      image(i, j) = (1 - below) * upper + below * lower;
    }
  }
}

/// Everything from 0 to count − 1 once an epoch, in another order each time, without a table of the order:
/// i ↦ (factor·i + offset) mod count, where factor and count have no common divisor.
class Shuffle {
 public:
  /// 2 ≤ count < 65,536, so that the product has 32 bits.
  explicit Shuffle(int count) : count_(static_cast<std::uint32_t>(count)) {}

  int next(attune::Rng& rng) {
    if (position_ == 0) {
      do {
        factor_ = 1 + rng.next() % (count_ - 1);
      } while (std::gcd(factor_, count_) != 1);
      offset_ = rng.next() % count_;
    }
    const std::uint32_t index = (factor_ * position_ + offset_) % count_;
    position_ = (position_ + 1) % count_;
    return static_cast<int>(index);
  }

 private:
  std::uint32_t count_;
  std::uint32_t position_ = 0, factor_ = 1, offset_ = 0;
};

struct Example {
  Image image;
  std::array<int, 1> label;
};

/// The same digit by a slightly different hand. The small model learns more from whole pixels: half of its
/// images are moved by one.
inline void vary(attune::Rng& rng, Image& image) {
  if constexpr (kSmall) {
    static constexpr float kWays[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};  // down, right
    const std::uint32_t way = rng.next() >> 29;
    if (way < std::size(kWays)) move(image, kWays[way][0], kWays[way][1], 0);
  } else {
    const float down = rng.uniform(-0.5f, 0.5f);
    const float right = rng.uniform(-0.5f, 0.5f);
    move(image, down, right, rng.uniform(-0.15f, 0.15f));
  }
}

/// The next example of training.
inline void draw(attune::Rng& rng, Shuffle& order, Example& to) {
  const auto index = static_cast<std::size_t>(order.next(rng));
  unpack(kPackedTrain[index], to.image);
  to.label[0] = kTrainLabels[index] - '0';
  vary(rng, to.image);
}

}  // namespace digits
