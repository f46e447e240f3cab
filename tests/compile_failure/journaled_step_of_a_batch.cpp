// expect: attune::TrainingJournal: step() is for a batch of one; take accumulate() and update(), which compute the same bits
#include "journal.hpp"

void train(TrainerOf<2>& trainer, Sink& sink, const TrainerOf<2>::BatchInput& x,
           const TrainerOf<2>::BatchTarget& y) {
  attune::TrainingJournal journal(trainer, sink);
  (void)journal.step(0, x, y, {});
}
