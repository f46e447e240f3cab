// Images as the model takes them, and the order in which training sees them.
#pragma once

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

/// Moves an image down by `rows` and to the right by `columns`, which may be negative; what comes in is
/// empty.
inline void shift(Image& image, int rows, int columns) {
  const Image before = image;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kPixels; ++j) {
      const int row = i - rows, column = j - columns;
      const bool inside = row >= 0 && row < kRows && column >= 0 && column < kPixels;
      image(i, j) = inside ? before(row, column) : 0.0f;
    }
  }
}

/// Everything from 0 to count − 1 once an epoch, in another order each time, without a table of the order:
/// i ↦ (factor·i + offset) mod count, where factor and count have no common divisor.
template <int count>
class Shuffle {
 public:
  int next(attune::Rng& rng) {
    if (position_ == 0) {
      do {
        factor_ = 1 + rng.next() % (kCount - 1);
      } while (std::gcd(factor_, kCount) != 1);
      offset_ = rng.next() % kCount;
    }
    const std::uint32_t index = (factor_ * position_ + offset_) % kCount;
    position_ = (position_ + 1) % kCount;
    return static_cast<int>(index);
  }

 private:
  static constexpr std::uint32_t kCount = count;
  static_assert(count > 1 && count < 65'536);  // so that the product has 32 bits
  std::uint32_t position_ = 0, factor_ = 1, offset_ = 0;
};

struct Example {
  Image image;
  std::array<int, 1> label;
};

/// The next example of training: half of the images as they are, half of them moved by one pixel.
inline void draw(attune::Rng& rng, Shuffle<kTrainImages>& order, Example& to) {
  const auto index = static_cast<std::size_t>(order.next(rng));
  unpack(kPackedTrain[index], to.image);
  to.label[0] = kTrainLabels[index] - '0';
  switch (rng.next() >> 29) {
    case 0:
      shift(to.image, 1, 0);
      break;
    case 1:
      shift(to.image, -1, 0);
      break;
    case 2:
      shift(to.image, 0, 1);
      break;
    case 3:
      shift(to.image, 0, -1);
      break;
    default:
      break;
  }
}

}  // namespace digits
