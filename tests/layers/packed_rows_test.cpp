// Tapes are packed and unpacked as far as their rows are valid.
#include <attune/layers/packed_rows.hpp>

#include <cstring>

#include <attune/execution/pass.hpp>

#include "check.hpp"

namespace {

using attune::TapePrecision;
using attune::detail::CopyTape;

constexpr int kTokens = 5, kWidth = 3, kHeads = 2;

// A tape with a matrix of tokens, two matrices below each other, and a number.
template <template <class, int, int> class Matrix = attune::Tensor>
struct Tape {
  Matrix<float, kTokens, kWidth> tokens;
  Matrix<float, kHeads * kTokens, kWidth> heads;
  int number;

  static void visit(const auto& visitor, const auto& context, auto&... tapes) {
    visitor.rows(context, tapes.tokens...);
    visitor.template stacked<kHeads>(context, kWidth - 1, tapes.heads...);
    visitor.member(context, tapes.number...);
  }
};

// Copies a tape of ones into a packed one and back, for the first tokens. The rest holds NaN before.
template <TapePrecision precision>
void expect_valid_rows_only(int length) {
  using Packed = Tape<attune::detail::PackedAs<precision>::template Matrix>;
  const attune::NoMask none;
  const attune::detail::FirstTokens<kTokens> tokens{length};
  const auto context = attune::Context(none, attune::RunToCompletion{}, tokens, tokens);
  static Tape<> tape, again;
  static Packed packed;
  std::memset(static_cast<void*>(&tape), 0xFF, sizeof tape);
  std::memset(static_cast<void*>(&again), 0xFF, sizeof again);
  std::memset(static_cast<void*>(&packed), 0, sizeof packed);
  for (int i = 0; i < length; ++i) {
    for (int j = 0; j < kWidth; ++j) tape.tokens(i, j) = 1;
    for (int j = 0; j < kWidth; ++j) {
      tape.heads(i, j) = tape.heads(kTokens + i, j) = j < kWidth - 1 ? 1.0f : 0.0f;  // zeros are not packed
    }
  }
  tape.number = 7;
  attune::detail::copy_tape(context, packed, tape);
  attune::detail::copy_tape(context, again, packed);
  EXPECT_TRUE(check::same_bits(again, tape));
  for (int i = length; i < kTokens; ++i) {
    for (int j = 0; j < kWidth; ++j) EXPECT_EQ(attune::dequantize(packed.tokens.at(i, j)), 0.0f);
  }
}

}  // namespace

TEST(QuantizedTapeRows, are_the_valid_ones) {
  for (int length = 1; length <= kTokens; ++length) {
    expect_valid_rows_only<TapePrecision::kInt8>(length);
    expect_valid_rows_only<TapePrecision::kBfloat16>(length);
  }
}
