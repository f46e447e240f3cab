// expect: attune::TrainingJournal: Sink::kProgramUnit must be 1, 2, 4, 8, 16 or 32 bytes
#include "journal.hpp"

struct Strange : Sink {
  static constexpr std::uint32_t kProgramUnit = 12;
};

void begin(TrainerOf<1>& trainer, Strange& sink) { attune::TrainingJournal(trainer, sink).started(); }
