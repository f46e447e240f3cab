// expect: attune::Replay: load(std::uint32_t number, Sequence&) of the Setup returns a Status
#include "journal.hpp"

#include <attune/host/replay.hpp>

struct Setup {
  using Trainer = TrainerOf<1>;
  using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;
  static void start(Trainer& trainer, std::uint32_t number);
  static void load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }
