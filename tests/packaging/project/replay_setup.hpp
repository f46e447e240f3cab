// The training whose journal tests/persistence/journal_of_version_1.hpp is.
#pragma once

#include <attune/attune.hpp>

struct Setup {
  using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 2}>;
  using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 2>;
  using Sequence = attune::JournaledSequence<Model::Input, Model::Output>;

  static void start(Trainer& trainer, std::uint32_t number) {
    trainer.initialize(attune::XavierUniform{}, attune::Rng(number));
  }
  static attune::Status load(std::uint32_t number, Sequence& sequence) {
    attune::Rng rng(number);
    for (float& value : sequence.x.values) value = rng.uniform(-1.0f, 1.0f);
    for (float& value : sequence.target.values) value = rng.uniform(-1.0f, 1.0f);
    return attune::Status::kOk;
  }
};
