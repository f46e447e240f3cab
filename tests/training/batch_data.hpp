// Random examples for trainers, one or a batch of them.
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/core/gradients.hpp>
#include <attune/core/initialize.hpp>
#include <attune/core/status.hpp>

#include "check.hpp"

namespace check {

/// Inputs, or targets: ids below 5, of which a batch ignores some where it may.
template <class Values>
void fill_batch(Values& values, attune::Rng& rng, bool ignored = false) {
  if constexpr (requires { values.values; }) {
    fill(values, rng);
  } else {
    for (int& id : values) {
      const std::uint32_t draw = rng.next();
      id = ignored && draw % 4 == 3 ? -100 : static_cast<int>(draw / 4 % 5);
    }
  }
}

/// An input and its target.
template <class Input, class Target>
struct Drawn {
  Input x;
  Target target;

  Drawn() = default;
  explicit Drawn(std::uint64_t seed) {
    attune::Rng rng(seed);
    draw(rng);
  }
  void draw(attune::Rng& rng) {
    fill_batch(x, rng);
    fill_batch(target, rng);
  }
};
/// A sequence of a model, and a matrix of its outputs as the target.
template <class Model>
using Example = Drawn<typename Model::Input, typename Model::Output>;
/// What a trainer takes in one step.
template <class Trainer>
using Batch = Drawn<typename Trainer::BatchInput, typename Trainer::BatchTarget>;

/// A batch of sequences of `rows` rows, one below the other.
template <class Trainer, int rows>
struct BatchData : Batch<Trainer> {
  using Batch<Trainer>::Batch;
  [[nodiscard]] auto input(int sequence) const {
    return attune::view(this->x).template rows_at<rows>(sequence * rows);
  }
  [[nodiscard]] auto target_of(int sequence) const {
    return attune::view(this->target).template rows_at<rows>(sequence * rows);
  }
};

/// Three steps of two trainers that begin alike, to the same bits.
template <class Plain, class Again, class Mask>
void expect_same_steps(Plain& plain, Again& again, const Mask& mask) {
  static Batch<Plain> data;
  plain.initialize(attune::XavierUniform{}, attune::Rng{3});
  again.initialize(attune::XavierUniform{}, attune::Rng{3});
  attune::Rng rng(5);
  for (int step = 0; step < 3; ++step) {
    data.draw(rng);
    const auto expected =
        plain.step(data.x, data.target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    const auto result = again.step(data.x, data.target, {.learning_rate = 0.01f}, attune::NoClipping{}, mask);
    EXPECT_EQ(result.status, attune::Status::kOk);
    EXPECT_EQ(result.loss, expected.loss);
    EXPECT_EQ(std::memcmp(&plain.parameters(), &again.parameters(), sizeof plain.parameters()), 0);
  }
}

/// The same for two types of trainers.
template <class Plain, class Again, class Mask = attune::NoMask>
void expect_same_training(const Mask& mask = {}) {
  static Plain plain;
  static Again again;
  expect_same_steps(plain, again, mask);
}

/// Sequences of two trainers that begin alike, one of them in slices, to the same bits.
template <class Trainer, class Model, int most_work>
void expect_bits_in_slices() {
  static Trainer at_once, in_slices;
  static Example<Model> data;
  for (Trainer* trainer : {&at_once, &in_slices})
    trainer->initialize(attune::XavierUniform{}, attune::Rng{3});
  attune::Rng rng(5);
  data.draw(rng);
  for (int sequence = 0; sequence < 2; ++sequence) {
    const auto expected = at_once.accumulate(data.x, data.target, attune::CausalMask{});
    auto pass = in_slices.template accumulate_in_slices<most_work>(data.x, data.target, attune::CausalMask{});
    while (pass.advance()) {
    }
    EXPECT_EQ(pass.result().status, attune::Status::kOk);
    EXPECT_EQ(pass.result().loss, expected.loss);
    EXPECT_TRUE(same_bits(in_slices.gradients(), at_once.gradients()));
  }
}

}  // namespace check
