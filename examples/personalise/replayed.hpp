// Takes of the factory's speakers, in flash, for replay beside the owner's: one of each digit and speaker, as
// eight tokens in 8 bits. A replayed take is sixteen tokens: each stored one twice.
#pragma once

#include <algorithm>

#include "../monitor/flash.hpp"
#include "model.hpp"

namespace personalise {

inline constexpr int kReplayedTakes = kDigits * (kSpeakers - 1);
inline constexpr int kStoredTokens = 8, kReplayedTokens = 2 * kStoredTokens;

class ReplayedTakes {
  struct Flash : monitor::Flash {
    static constexpr std::uint32_t kPages = 10;
    using monitor::Flash::Flash;
  };
  using Stored = attune::Tensor<float, 1, kStoredTokens * kBands>;  // one row, and so one scale
  using Memory = attune::FlashReplayMemory<Flash, Stored, attune::ReplayShape{kReplayedTakes, kDigits}>;

 public:
  static constexpr std::size_t kFlashBytes = std::size_t{Flash::kPages} * Flash::kPageSize;
  static constexpr std::size_t kRam = sizeof(Memory);

  ReplayedTakes() { std::fill_n(in_flash_, kFlashBytes, Flash::kErased); }
  ReplayedTakes(const ReplayedTakes&) = delete;
  ReplayedTakes& operator=(const ReplayedTakes&) = delete;

  /// Fills the memory, as the factory does. Afterwards nothing writes to it.
  attune::Status begin(const Recordings& recordings) {
    attune::Status status = memory_.open();
    bool stored[kSpeakers][kDigits] = {};
    for (const Recording& take : recordings.of(Use::kOthersTakes)) {
      if (stored[take.speaker][take.digit]) continue;
      stored[take.speaker][take.digit] = true;
      if (status == attune::Status::kOk) status = memory_.add(compressed(take), take.digit);
    }
    return status;
  }
  /// Replays one take into a trainer's batch.
  attune::Status replay(auto& trainer, attune::Rng& rng, Example& example) {
    Stored stored;
    int length = 0;
    const attune::Status drawn = memory_.draw(rng, stored, example.digit[0], length);
    if (drawn != attune::Status::kOk) return drawn;
    example.tokens = {};
    for (int i = 0; i < kReplayedTokens * kBands; ++i) {
      const int token = i / kBands, band = i % kBands;
      example.tokens.values[i] = stored.values[token / 2 * kBands + band];
    }
    (void)example.padding.set_length(kReplayedTokens);
    return trainer.accumulate(example.tokens, example.digit, example.padding).status;
  }

 private:
  /// The means of eight equal parts of a recording. A token takes part by its overlap.
  static Stored compressed(const Recording& take) {
    Stored stored;
    for (int part = 0; part < kStoredTokens; ++part) {
      const int begin = part * take.length, end = begin + take.length;  // in eighths of a token
      for (int band = 0; band < kBands; ++band) {
        int sum = 0;
        for (int token = 0; token < take.length; ++token) {
          const int first = std::max(begin, token * kStoredTokens);
          const int last = std::min(end, (token + 1) * kStoredTokens);
          sum += std::max(last - first, 0) * take.bands[token * kBands + band];
        }
        stored.values[part * kBands + band] = static_cast<float>(sum) * kScale / take.length;
      }
    }
    return stored;
  }

  unsigned char in_flash_[kFlashBytes];
  Flash flash_{in_flash_};
  Memory memory_{flash_};
};

}  // namespace personalise
