// expect: attune::TrainingJournal: a ForwardOnlyTrainer needs no journal; keep the `change` of each update's result, and replay() repeats the training
#include "journal.hpp"

void train(attune::ForwardOnlyTrainer<Model>& trainer, Sink& sink, const Model::Input& x,
           const Model::Output& y) {
  attune::TrainingJournal journal(trainer, sink);
  journal.started(1);
  (void)journal.accumulate(1, x, y);
  (void)journal.update({.learning_rate = 0.1f});
  journal.saving();
}
