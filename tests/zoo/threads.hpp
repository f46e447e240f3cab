// Executions on the threads of a PC.
#pragma once

#include <memory>

#include <attune/host/parallel_inference.hpp>
#include <attune/host/parallel_trainer.hpp>
#include <attune/host/thread_pool.hpp>

#include "zoo/inference.hpp"

namespace zoo {

/// A CrewTrainer and its crew.
template <class Entry, Execution execution>
struct TrainerWithCrew
    : CrewTrainer<host::Threads<3>, typename ModelIn<Entry, execution>::type, typename Entry::Loss,
                  typename Entry::Optimizer, execution.key.batch, decltype(plan_of<Entry, execution>())> {
  host::Threads<3> crew;

  auto step(const auto&... args) { return TrainerWithCrew::CrewTrainer::step(crew, args...); }
};
template <class Entry, Execution execution>
Outcome train_on_crew() {
  using Trainer = TrainerWithCrew<Entry, execution>;
  const auto first = std::make_unique<Trainer>(), second = std::make_unique<Trainer>();
  return train<Entry, execution>(*std::make_unique<Data<Trainer>>(), *first,
                                 [&]() -> Trainer& { return *second; });
}

/// A training.
template <class Entry, Execution execution>
Outcome train_on_threads() {
  using Model = typename ModelIn<Entry, execution>::type;
  using Trainer = host::ParallelTrainer<Model, typename Entry::Loss, typename Entry::Optimizer,
                                        execution.key.batch, decltype(plan_of<Entry, execution>())>;
  const auto make = [](int threads) {
    return std::make_unique<Trainer>(host::ParallelOptions{.threads = threads});
  };
  const auto first = make(3), second = make(2);
  return train<Entry, execution>(*std::make_unique<Data<Trainer>>(), *first,
                                 [&]() -> Trainer& { return *second; });
}

template <class Entry, Key key>
Outcome infer_on_crew() {
  host::Threads<3> crew;
  const auto inference = std::make_unique<CrewInference<host::Threads<3>, typename Entry::Model>>();
  return infer_each<Entry, key>([&](auto& trainer, const auto& x, auto& y, const auto& mask) {
    return answer_of([&] { return inference->infer(crew, trainer.parameters(), x, y, mask); });
  });
}
template <class Entry, Key key>
Outcome infer_on_threads() {
  return infer_each<Entry, key>([](auto& trainer, const auto& x, auto& y, const auto& mask) {
    host::ParallelInference<typename Entry::Model> inference(3);
    return answer_of([&] { return inference.forward(trainer.parameters(), x, y, mask); });
  });
}

}  // namespace zoo
