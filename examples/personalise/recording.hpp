// A recording of a spoken digit, as it is in flash, and those that a device has.
#pragma once

#include <span>

namespace personalise {

inline constexpr int kTokens = ATTUNE_EXAMPLE_SEQ_LEN;
inline constexpr int kBands = 16;
inline constexpr int kDigits = 10;
inline constexpr int kSpeakers = 6;
inline constexpr int kTakesOfDigit = 5;     // from which a device learns
inline constexpr float kScale = 1 / 32.0f;  // of what a model sees, to a step of the recording's integers

/// What a recording is for.
enum class Use : unsigned char {
  kTakes,        // the new speaker's, to learn from
  kOwnTest,      // others of theirs
  kOthersTest,   // of the speakers whom the base knows
  kOthersTakes,  // of theirs, to be rehearsed
};

struct Recording {
  signed char bands[kTokens * kBands];  // zero behind `length` tokens
  unsigned char length;
  unsigned char digit;
  unsigned char speaker;
  Use use;
};
static_assert(sizeof(Recording) == kTokens * kBands + 4);

/// All of a device, those for one use behind each other; takes in the order of the digits.
struct Recordings {
  std::span<const Recording> all;

  [[nodiscard]] std::span<const Recording> of(Use use) const {
    std::size_t first = 0;
    while (first < all.size() && all[first].use != use) ++first;
    std::size_t end = first;
    while (end < all.size() && all[end].use == use) ++end;
    return all.subspan(first, end - first);
  }
};

}  // namespace personalise
