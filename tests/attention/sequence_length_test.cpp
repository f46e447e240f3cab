#include <attune/attention/sequence_length.hpp>

#include "check.hpp"

namespace {

using attune::Status;

constexpr int kTokens = 5;
using Length = attune::SequenceLength<kTokens>;

template <class Mask>
bool hides(const Mask& mask, int key) {
  float row[kTokens] = {};
  mask.template hide<kTokens>(0, 0, row);
  mask.template bias<kTokens>(0, 0, row);
  return row[key] == -check::kInfinity<float>;
}

}  // namespace

TEST(SequenceLength, covers_the_whole_sequence_by_default) {
  const Length mask;
  EXPECT_EQ(mask.length(), kTokens);
  for (int key = 0; key < kTokens; ++key) EXPECT_FALSE(hides(mask, key));
}

TEST(SequenceLength, hides_later_tokens) {
  Length mask;
  for (int length = 1; length <= kTokens; ++length) {
    EXPECT_EQ(mask.set_length(length), Status::kOk);
    EXPECT_EQ(mask.length(), length);
    for (int key = 0; key < kTokens; ++key) {
      EXPECT_EQ(hides(mask, key), key >= length);
      EXPECT_EQ(mask.keeps_key<kTokens>(key), key < length);
    }
  }
}

TEST(SequenceLength, refuses_zero_and_too_many_tokens) {
  Length mask;
  EXPECT_EQ(mask.set_length(3), Status::kOk);
  for (const int length : {0, -1, kTokens + 1}) {
    EXPECT_EQ(mask.set_length(length), Status::kInvalidLength);
    EXPECT_EQ(mask.length(), 3);
  }
}

TEST(SequenceLength, is_said_by_masks_together_with_others) {
  Length three, four;
  EXPECT_EQ(three.set_length(3), Status::kOk);
  EXPECT_EQ(four.set_length(4), Status::kOk);
  EXPECT_EQ((attune::CausalMask{} && three).length(), 3);
  EXPECT_EQ((three && attune::CausalMask{}).length(), 3);
  EXPECT_EQ((four && (attune::CausalMask{} && three)).length(), 3);
  static_assert(!attune::detail::SaysLength<decltype(attune::CausalMask{} && attune::KeyPaddingMask<4>{})>);
}
