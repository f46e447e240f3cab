// Executions on the threads of a PC.
#pragma once

#include <memory>

#include <attune/host/parallel_inference.hpp>
#include <attune/host/parallel_trainer.hpp>

#include "zoo/inference.hpp"

namespace zoo {

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
Outcome infer_on_threads() {
  return infer_each<Entry, key>([](auto& trainer, const auto& x, auto& y, const auto& mask) {
    host::ParallelInference<typename Entry::Model> inference(3);
    if constexpr (attune::detail::TakesIds<typename Entry::Model>) {
      return inference.forward(trainer.parameters(), x, y, mask);
    } else {
      inference.forward(trainer.parameters(), x, y, mask);
      return Status::kOk;
    }
  });
}

}  // namespace zoo
