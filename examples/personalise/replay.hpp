// What a PC needs to replay a journal of personalise (attune/host/replay.hpp).
#pragma once

#include <attune/attune.hpp>

#include <personalise_base.hpp>
#include <personalise_recordings.hpp>

#include "../flash_rows.hpp"
#include "learner.hpp"

namespace personalise {

struct Replayed {
  static constexpr auto& kBase = attune::kInFlash<Names, personalise_base>;
  static constexpr auto kFront = kBase.layer<0>();
  using Adapting = Learner<method_named(ATTUNE_EXAMPLE_METHOD), kBase, kFront>;
  using Trainer = Adapting::Trainer;
  using Sequence =
      attune::JournaledSequence<Front::Input, std::array<int, 1>, attune::KeyPaddingMask<kTokens>>;

  static void start(Trainer& trainer, std::uint32_t) { Adapting::start(trainer); }
  static Status load(std::uint32_t number, Sequence& sequence) {
    const auto recordings = flash_rows<Recording, personalise_recordings>();
    if (number >= recordings.size()) return Status::kNothingStored;
    static Example example;
    personalise::load(recordings[number], example);
    sequence = {example.tokens, example.digit, example.padding};
    return Status::kOk;
  }
  static std::uint32_t base_crc() { return flash_crc<personalise_base>(); }
};

}  // namespace personalise
