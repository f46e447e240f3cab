// expect: attune::TrainingJournal: a sink is called as sink(const char* bytes, std::size_t count)
#include "journal.hpp"

struct Strange {
  void write(const char* bytes, std::size_t count);
};

void begin(TrainerOf<1>& trainer, Strange& sink) { attune::TrainingJournal(trainer, sink).started(); }
