// A batch of random matrices for a trainer, and its sequences.
#pragma once

#include "check.hpp"

namespace check {

/// Sequences of `rows` rows, one below the other.
template <class Trainer, int rows>
struct BatchData {
  typename Trainer::BatchInput x;
  typename Trainer::BatchTarget target;

  explicit BatchData(std::uint64_t seed) {
    attune::Rng rng(seed);
    fill(x, rng);
    fill(target, rng);
  }
  [[nodiscard]] auto input(int sequence) const {
    return attune::view(x).template rows_at<rows>(sequence * rows);
  }
  [[nodiscard]] auto target_of(int sequence) const {
    return attune::view(target).template rows_at<rows>(sequence * rows);
  }
};

}  // namespace check
