// Sequences that are shorter than their model: what they are of, and what they are compared with.
#pragma once

#include <array>

#include <attune/attention/sequence_length.hpp>

#include "check.hpp"

namespace check {

/// A mask of so many tokens.
template <class Mask>
Mask of_length(int length) {
  Mask mask;
  EXPECT_EQ(mask.set_length(length), attune::Status::kOk);
  return mask;
}

/// Rows from `length` on; ids, what is none.
template <class Matrix>
[[gnu::noinline]] void fill_behind(Matrix& matrix, int length, float value) {
  for (int i = length; i < Matrix::rows; ++i) {
    for (int j = 0; j < Matrix::cols; ++j) matrix(i, j) = value;
  }
}
template <std::size_t size>
void fill_behind(std::array<int, size>& ids, int length, float) {
  for (std::size_t i = static_cast<std::size_t>(length); i < size; ++i) ids[i] = -1;
}

/// The bits of another matrix in rows before `length`, zeros behind.
template <class Matrix>
[[gnu::noinline]] void expect_same_and_zeros_behind(const Matrix& own, const Matrix& padded, int length) {
  for (int i = 0; i < Matrix::rows; ++i) {
    for (int j = 0; j < Matrix::cols; ++j) {
      EXPECT_TRUE(same_bits(own(i, j), i < length ? padded(i, j) : 0.0f)) << i << j;
    }
  }
}

/// What stands behind a length: what padding has there, or what nothing may read.
enum class Behind { kPadding, kGarbage };

/// Sequences of up to kTokens tokens, one below the other, of which that of number s has length_of(s).
template <int kTokens, class LengthOf>
struct Sequences {
  LengthOf length_of;

  [[nodiscard]] bool is_token(int i) const { return i % kTokens < length_of(i / kTokens); }

  /// Ids of a vocabulary.
  template <std::size_t size>
  void fill(std::array<int, size>& ids, attune::Rng& rng, Behind behind, int vocabulary) const {
    for (std::size_t i = 0; i < size; ++i) {
      const int id = static_cast<int>(rng.next() % static_cast<unsigned>(vocabulary));
      ids[i] = is_token(static_cast<int>(i)) ? id : behind == Behind::kGarbage ? -1 : 0;
    }
  }
  /// Features in [−1, 1).
  void fill(auto& matrix, attune::Rng& rng, Behind behind, int) const {
    for (int i = 0; i < matrix.rows; ++i) {
      for (int j = 0; j < matrix.cols; ++j) {
        const float value = rng.uniform(-1.0f, 1.0f);
        matrix(i, j) = is_token(i) ? value : behind == Behind::kGarbage ? kNan<float> : 0.5f;
      }
    }
  }
  /// Answers for every token, of which those behind are ignored, or for every sequence (kAnswers = 1).
  template <int kAnswers, std::size_t size>
  void fill_classes(std::array<int, size>& answers, attune::Rng& rng, int classes) const {
    constexpr int kIgnored = -100;
    for (std::size_t i = 0; i < size; ++i) {
      const int answer = static_cast<int>(rng.next() % static_cast<unsigned>(classes));
      const int sequence = static_cast<int>(i) / kAnswers, token = static_cast<int>(i) % kAnswers;
      answers[i] = token < length_of(sequence) ? answer : kIgnored;
    }
  }
};

/// The same, their tokens named.
template <int kTokens, class LengthOf>
[[nodiscard]] Sequences<kTokens, LengthOf> sequences(LengthOf length_of) {
  return {length_of};
}

}  // namespace check
