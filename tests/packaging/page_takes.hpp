// Sequences of four tokens with three features, and a factory's training on them, for programs on pages.
#pragma once

#include <attune/attune.hpp>

#include <algorithm>

/// Draws a sequence whose class is the feature with the largest sum. Then `bias` moves the third feature, as
/// a new user would.
template <class Input>
int draw(attune::Rng& rng, Input& x, float bias) {
  float sums[3] = {};
  for (int token = 0; token < 4; ++token) {
    for (int j = 0; j < 3; ++j) sums[j] += x(token, j) = rng.uniform(-1, 1);
  }
  for (int token = 0; token < 4; ++token) x(token, 2) += bias;
  return static_cast<int>(std::max_element(sums, sums + 3) - sums);
}

/// Draws a sequence whose class is the feature that is large. `turned` of it is in the next feature instead.
template <class Input>
int draw_turned(attune::Rng& rng, Input& x, float turned) {
  const int label = static_cast<int>(rng.uniform(0, 2.999f));
  for (int token = 0; token < 4; ++token) {
    for (int j = 0; j < 3; ++j) {
      x(token, j) = 0.3f * rng.normal() + (j == label ? 1.5f - turned : j == (label + 1) % 3 ? turned : 0.0f);
    }
  }
  return label;
}

/// Draws a batch of sequences of four tokens, whose classes are the features with the largest sums of the
/// first three.
template <class BatchInput, class BatchTarget>
void draw_batch(attune::Rng& rng, BatchInput& x, BatchTarget& classes) {
  for (float& value : x.values) value = rng.uniform(-1.0f, 1.0f);
  for (int sequence = 0; sequence < static_cast<int>(classes.size()); ++sequence) {
    float sums[3] = {};
    for (int token = 0; token < 4; ++token) {
      for (int j = 0; j < 3; ++j) sums[j] += x(4 * sequence + token, j);
    }
    classes[static_cast<std::size_t>(sequence)] = static_cast<int>(std::max_element(sums, sums + 3) - sums);
  }
}

/// Trains on 300 batches of eight sequences, draw(rng, x, 0).
template <class Model, class Draw>
bool train_in_factory(typename Model::Parameters& base, attune::Rng& rng, const Draw& draw_one) {
  static attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 8> trainer;
  static typename Model::Input x;
  trainer.initialize(attune::XavierUniform{}, rng);
  for (int step = 0; step < 300; ++step) {
    for (int i = 0; i < 8; ++i) {
      const int label = draw_one(rng, x, 0);
      if (!trainer.accumulate(x, label).ok()) return false;
    }
    if (!trainer.update({.learning_rate = 1e-2f}).ok()) return false;
  }
  base = trainer.parameters();
  return true;
}
