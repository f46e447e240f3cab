// expect: attune::Replay: the Setup has no start(Trainer&, std::uint32_t number)
#include "journal.hpp"

#include <attune/host/replay.hpp>

struct Setup {
  using Trainer = TrainerOf<1>;
  using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;
  static attune::Status load(std::uint32_t number, Sequence& sequence);
};

bool replays(std::span<const std::byte> journal) { return attune::host::Replay<Setup>().run(journal).ok(); }
