// Sequences that are shorter than their model: what they are of, and what they are compared with.
#pragma once

#include <array>
#include <cstring>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
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

/// Self-attention of `length` tokens behind a causal mask has the bits that it has with padding: behind them
/// nothing of x and dy counts, nor what tape and scratch held.
template <attune::AttentionShape shape>
void expect_bits_of_padding(std::initializer_list<int> lengths) {
  using Attention = attune::MultiHeadAttention<shape>;
  static_assert(attune::detail::TakesLength<Attention>);
  static struct {
    typename Attention::Parameters gradients;
    typename Attention::Input x, dx;
    typename Attention::Output y, dy, inferred;
    typename Attention::Tape tape;
  } padded, own;
  static typename Attention::Parameters parameters;
  static typename Attention::Scratch scratch;
  static typename Attention::InferenceScratch inference;
  attune::Rng rng(1);
  fill_set(parameters, rng);
  for (const int length : lengths) {
    fill(padded.x, rng);
    fill(padded.dy, rng);
    own.x = padded.x;
    own.dy = padded.dy;
    fill_behind(padded.dy, length, 0.0f);
    fill_behind(own.x, length, kNan<float>);
    fill_behind(own.dy, length, kNan<float>);
    const auto run = [&](auto& on, const auto& tokens) {
      const auto mask = attune::CausalMask{} && tokens;
      on.gradients = {};
      std::memset(static_cast<void*>(&on.tape), 0xFF, sizeof on.tape);  // NaN
      std::memset(static_cast<void*>(&scratch), 0xFF, sizeof scratch);
      std::memset(static_cast<void*>(&inference), 0xFF, sizeof inference);
      attune::Rng seeds(3);
      attune::draw_seeds(on.tape, seeds);
      attune::infer<Attention>(parameters, on.x, on.inferred, inference, mask);
      attune::forward<Attention>(parameters, on.x, on.y, on.tape, scratch, mask);
      attune::backward<Attention>(parameters, on.x, on.tape, on.dy, on.dx, on.gradients, scratch, mask);
    };
    run(padded, of_length<attune::KeyPaddingMask<shape.seq_len>>(length));
    run(own, of_length<attune::SequenceLength<shape.seq_len>>(length));
    EXPECT_TRUE(same_bits(own.gradients, padded.gradients));
    expect_same_and_zeros_behind(own.y, padded.y, length);
    expect_same_and_zeros_behind(own.inferred, padded.inferred, length);
    expect_same_and_zeros_behind(own.dx, padded.dx, length);
  }
}

}  // namespace check
