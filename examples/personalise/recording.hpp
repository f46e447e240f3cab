// A recording of a spoken digit, as it is in flash, and those that a device has.
#pragma once

#include <span>

#include <attune/core/rng.hpp>

namespace personalise {

inline constexpr int kTokens = ATTUNE_EXAMPLE_SEQ_LEN;
inline constexpr int kBands = 16;
inline constexpr int kDigits = 10;
inline constexpr int kSpeakers = 6;
inline constexpr int kTakesOfDigit = 5;  // from which a device learns
inline constexpr int kNumTakes = kDigits * kTakesOfDigit;
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

/// What may be wrong with the new speaker's takes. From kUnlabeled on, labels are unknown.
enum class Fault {
  kNone,
  kNoisy30,       // each of 30 % has a label that is drawn
  kNoisy60,       // of 60 %
  kSilence,       // noise of a microphone, and nobody speaks
  kWrongSpeaker,  // somebody else speaks, whom the base knows
  kUnlabeled,
  kOneLabel,   // but for one take of each digit
  kTwoLabels,  // but for two
  kUnlabeledSilence,
  kUnlabeledWrongSpeaker,
  kUnlabeledNoise,     // as loud as speech
  kUnlabeledOneDigit,  // takes of one digit only
  kUnlabeledSkewed,    // a third are of one digit, and four digits never come
};

/// All of a device, those for one use behind each other; takes in the order of the digits.
struct Recordings {
  std::span<const Recording> all;
  Fault fault = Fault::kNone;
  float rate_times = 1;  // how much too large the learning rate is
  int replayed = 5;      // in each step, from a memory in flash

  [[nodiscard]] std::span<const Recording> of(Use use) const {
    std::size_t first = 0;
    while (first < all.size() && all[first].use != use) ++first;
    std::size_t end = first;
    while (end < all.size() && all[end].use == use) ++end;
    return all.subspan(first, end - first);
  }
  /// A take of the new speaker, with the fault that it has.
  [[nodiscard]] Recording take(int index) const {
    Recording take = of(Use::kTakes)[static_cast<std::size_t>(index)];
    attune::Rng rng{50};
    rng.skip(static_cast<std::uint64_t>(index) * sizeof take.bands);
    switch (fault) {
      case Fault::kNone:
      case Fault::kUnlabeled:
      case Fault::kOneLabel:
      case Fault::kTwoLabels:
        break;
      case Fault::kNoisy30:
      case Fault::kNoisy60:
        if (rng.uniform(0.0f, 1.0f) < (fault == Fault::kNoisy30 ? 0.3f : 0.6f)) {
          take.digit = static_cast<unsigned char>(rng.next() % kDigits);
        }
        break;
      case Fault::kSilence:
      case Fault::kUnlabeledSilence:
      case Fault::kUnlabeledNoise: {
        const float loudness = fault == Fault::kUnlabeledNoise ? 127.0f : 28.0f;
        for (int i = 0; i < take.length * kBands; ++i) {
          take.bands[i] = static_cast<signed char>(rng.uniform(-loudness, loudness));
        }
        break;
      }
      case Fault::kWrongSpeaker:
      case Fault::kUnlabeledWrongSpeaker:
        return take_of_another(index);
      case Fault::kUnlabeledOneDigit:
        return of(Use::kTakes)[static_cast<std::size_t>(index % kTakesOfDigit)];
      case Fault::kUnlabeledSkewed: {
        static constexpr int kDigitOf[kDigits] = {0, 0, 0, 4, 4, 1, 7, 7, 8, 9};
        const int digit = kDigitOf[index / kTakesOfDigit];
        return of(Use::kTakes)[static_cast<std::size_t>(digit * kTakesOfDigit + index % kTakesOfDigit)];
      }
    }
    return take;
  }
  /// The digit of a take of which it is known; attune::kUnlabeled of the others.
  [[nodiscard]] int known_label(int index) const {
    const int labels = fault == Fault::kOneLabel ? 1 : fault == Fault::kTwoLabels ? 2 : 0;
    return index % kTakesOfDigit < labels ? index / kTakesOfDigit : -1;
  }

 private:
  // Of one speaker among the others there are fewer takes than of the new one.
  [[nodiscard]] Recording take_of_another(int index) const {
    const auto others = of(Use::kOthersTakes);
    const Recording* chosen = nullptr;
    int left = index % kTakesOfDigit;
    while (chosen == nullptr) {
      for (const Recording& take : others) {
        const bool is_it = take.speaker == others[0].speaker && take.digit == index / kTakesOfDigit;
        if (is_it && left-- == 0) chosen = &take;
      }
    }
    return *chosen;
  }
};

}  // namespace personalise
