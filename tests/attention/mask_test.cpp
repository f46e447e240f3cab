#include <attune/attention/mask.hpp>

#include <array>
#include <span>

#include <limits>

#include "check.hpp"

namespace {

using attune::Status;
using attune::Tensor;
using check::kInfinity;

constexpr float kHidden = -kInfinity<float>;

// A row of scores 1, 2, …, kKvLen after the mask.
template <int kKvLen, class Mask>
Tensor<float, 1, kKvLen> masked_row(const Mask& mask, int query, int head = 0) {
  Tensor<float, 1, kKvLen> row;
  for (int key = 0; key < kKvLen; ++key) row.values[key] = static_cast<float>(key + 1);
  mask.template hide<kKvLen>(head, query, row.data());
  mask.template bias<kKvLen>(head, query, row.data());
  return row;
}

template <int kKvLen>
void expect_row(const Tensor<float, 1, kKvLen>& row, const float (&expected)[kKvLen]) {
  for (int key = 0; key < kKvLen; ++key) EXPECT_EQ(row.values[key], expected[key]);
}

// constexpr: a mask may stand in flash.
constexpr attune::KeyPaddingMask<4> kTwoKeys = [] {
  attune::KeyPaddingMask<4> mask;
  (void)mask.set_length(2);
  return mask;
}();
static_assert(kTwoKeys.valid(1) && !kTwoKeys.valid(2));
static_assert(attune::AttentionMask<attune::NoMask> && attune::AttentionMask<attune::CausalMask>);

}  // namespace

TEST(NoMask, changes_nothing) { expect_row(masked_row<3>(attune::NoMask{}, 0), {1, 2, 3}); }

TEST(CausalMask, hides_later_tokens) {
  expect_row(masked_row<4>(attune::CausalMask{}, 0), {1, kHidden, kHidden, kHidden});
  expect_row(masked_row<4>(attune::CausalMask{}, 2), {1, 2, 3, kHidden});
  expect_row(masked_row<4>(attune::CausalMask{}, 3), {1, 2, 3, 4});
  expect_row(masked_row<4>(attune::CausalMask{}, 9), {1, 2, 3, 4});
}

TEST(CausalMask, offset_moves_the_diagonal) {
  expect_row(masked_row<4>(attune::CausalMask{.offset = 2}, 0), {1, 2, 3, kHidden});
  expect_row(masked_row<4>(attune::CausalMask{.offset = -1}, 0), {kHidden, kHidden, kHidden, kHidden});
  expect_row(masked_row<4>(attune::CausalMask{.offset = -1}, 1), {1, kHidden, kHidden, kHidden});
  expect_row(masked_row<4>(attune::CausalMask{.offset = -5}, 1), {kHidden, kHidden, kHidden, kHidden});
}

TEST(CausalMask, takes_any_offset) {
  constexpr int kMax = std::numeric_limits<int>::max(), kMin = std::numeric_limits<int>::min();
  expect_row(masked_row<4>(attune::CausalMask{kMax}, 0), {1, 2, 3, 4});
  expect_row(masked_row<4>(attune::CausalMask{kMax}, 3), {1, 2, 3, 4});
  expect_row(masked_row<4>(attune::CausalMask{kMax - 1}, 3), {1, 2, 3, 4});
  expect_row(masked_row<4>(attune::CausalMask{kMin}, 3), {kHidden, kHidden, kHidden, kHidden});
}

TEST(KeyPaddingMask, keeps_all_keys_by_default) {
  expect_row(masked_row<3>(attune::KeyPaddingMask<3>{}, 0), {1, 2, 3});
}

TEST(KeyPaddingMask, hides_keys_beyond_the_length) {
  attune::KeyPaddingMask<4> mask;
  EXPECT_EQ(mask.set_length(2), Status::kOk);
  expect_row(masked_row<4>(mask, 0), {1, 2, kHidden, kHidden});
  expect_row(masked_row<4>(mask, 3), {1, 2, kHidden, kHidden});
  EXPECT_EQ(mask.set_length(4), Status::kOk);
  expect_row(masked_row<4>(mask, 0), {1, 2, 3, 4});
  mask.set_valid({false, false, false, false});
  expect_row(masked_row<4>(mask, 0), {kHidden, kHidden, kHidden, kHidden});
}

TEST(KeyPaddingMask, true_may_be_attended_to) {
  attune::KeyPaddingMask<4> mask;
  mask.set_valid({true, false, true, false});
  expect_row(masked_row<4>(mask, 1), {1, kHidden, 3, kHidden});
  constexpr std::array<bool, 4> kValid{false, true, true, false};
  mask.set_valid(std::span<const bool, 4>(kValid));
  expect_row(masked_row<4>(mask, 1), {kHidden, 2, 3, kHidden});
}

TEST(KeyPaddingMask, refuses_a_length_outside_and_stays_as_it_was) {
  attune::KeyPaddingMask<4> mask;
  mask.set_valid({true, false, true, false});
  const attune::KeyPaddingMask<4> before = mask;
  for (const int length :
       {0, 5, -1, 1000, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    EXPECT_EQ(mask.set_length(length), Status::kInvalidLength);
    EXPECT_TRUE(check::same_bits(mask, before));
    EXPECT_EQ(attune::QueryPaddingMask<4>{}.set_length(length), Status::kInvalidLength);
  }
}

TEST(QueryPaddingMask, hides_every_key_from_padding) {
  attune::QueryPaddingMask<3> mask;
  EXPECT_EQ(mask.set_length(1), Status::kOk);
  expect_row(masked_row<2>(mask, 0), {1, 2});
  expect_row(masked_row<2>(mask, 1), {kHidden, kHidden});
  mask.set_valid({false, true, true});
  expect_row(masked_row<2>(mask, 0), {kHidden, kHidden});
  expect_row(masked_row<2>(mask, 2), {1, 2});
  EXPECT_EQ(mask.set_length(4), Status::kInvalidLength);
  EXPECT_EQ(mask.set_length(-1), Status::kInvalidLength);
  expect_row(masked_row<2>(mask, 0), {kHidden, kHidden});
}

TEST(AdditiveMask, adds_its_row) {
  const Tensor<float, 2, 3> bias{{10, 20, 30, 40, 50, 60}};
  expect_row(masked_row<3>(attune::AdditiveMask(bias), 0), {11, 22, 33});
  expect_row(masked_row<3>(attune::AdditiveMask(bias), 1), {41, 52, 63});
  expect_row(masked_row<3>(attune::AdditiveMask(bias), 1, 5), {41, 52, 63});
}

TEST(AdditiveMask, per_head_takes_the_rows_of_its_head) {
  const Tensor<float, 4, 2> bias{{1, 2, 3, 4, 5, 6, 7, 8}};
  const auto mask = attune::additive_mask_per_head<2>(bias);
  expect_row(masked_row<2>(mask, 1, 0), {4, 6});
  expect_row(masked_row<2>(mask, 0, 1), {6, 8});
  expect_row(masked_row<2>(mask, 1, 1), {8, 10});
}

TEST(AdditiveMask, minus_infinity_hides) {
  const Tensor<float, 1, 3> bias{{0, kHidden, 5}};
  expect_row(masked_row<3>(attune::AdditiveMask(bias), 0), {1, kHidden, 8});
}

TEST(AdditiveMask, plus_infinity_leaves_nothing_else) {
  const Tensor<float, 1, 4> bias{{0, kInfinity<float>, 5, kInfinity<float>}};
  expect_row(masked_row<4>(attune::AdditiveMask(bias), 0), {kHidden, 2, kHidden, 4});
}

TEST(AdditiveMask, plus_infinity_does_not_uncover_a_hidden_key) {
  const Tensor<float, 1, 3> bias{{kInfinity<float>, 5, kInfinity<float>}};
  attune::KeyPaddingMask<3> keys;
  keys.set_valid({false, true, true});
  expect_row(masked_row<3>(keys && attune::AdditiveMask(bias), 0), {kHidden, kHidden, 3});
  expect_row(masked_row<3>(attune::AdditiveMask(bias) && keys, 0), {kHidden, kHidden, 3});
  keys.set_valid({false, true, false});  // both keys with +∞ are padding: the finite one is left
  expect_row(masked_row<3>(keys && attune::AdditiveMask(bias), 0), {kHidden, 7, kHidden});
  expect_row(masked_row<3>(attune::AdditiveMask(bias) && keys, 0), {kHidden, 7, kHidden});
}

TEST(AdditiveMask, of_another_scalar_is_converted) {
  const Tensor<float, 1, 2> bias{{0.5f, -kInfinity<float>}};
  double row[] = {1.0, 2.0};
  const attune::AdditiveMask mask(bias);
  mask.hide<2>(0, 0, row);
  mask.bias<2>(0, 0, row);
  EXPECT_EQ(row[0], 1.5);
  EXPECT_EQ(row[1], -kInfinity<double>);
}

TEST(BothMasks, hide_where_either_hides_and_add_both_biases) {
  const Tensor<float, 2, 4> first{{1, 1, 1, 1, 2, 2, 2, 2}}, second{{10, 10, 10, 10, 20, 20, 20, kHidden}};
  attune::KeyPaddingMask<4> keys;
  keys.set_valid({false, true, true, true});
  const auto mask =
      attune::CausalMask{.offset = 2} && keys && attune::AdditiveMask(first) && attune::AdditiveMask(second);
  expect_row(masked_row<4>(mask, 0), {kHidden, 13, 14, kHidden});
  expect_row(masked_row<4>(mask, 1), {kHidden, 24, 25, kHidden});
}

TEST(Masks, say_where_keys_that_nobody_attends_to_begin) {
  using attune::CausalMask, attune::KeyPaddingMask, attune::detail::kv_end;
  EXPECT_EQ((kv_end<8>(attune::NoMask{}, 0, 3)), 8);
  EXPECT_EQ((kv_end<8>(CausalMask{}, 2, 3)), 5);
  EXPECT_EQ((kv_end<8>(CausalMask{2}, 2, 3)), 7);
  EXPECT_EQ((kv_end<8>(CausalMask{-9}, 2, 3)), 0);
  EXPECT_EQ((kv_end<8>(CausalMask{std::numeric_limits<int>::max()}, 2, 3)), 8);
  KeyPaddingMask<8> padding;
  EXPECT_EQ((kv_end<8>(padding, 0, 8)), 8);
  padding.set_valid({true, false, true, true, false, false, false, false});
  EXPECT_EQ((kv_end<8>(padding, 0, 8)), 4);
  EXPECT_EQ((kv_end<8>(padding && CausalMask{}, 1, 1)), 2);
  EXPECT_EQ((kv_end<8>(CausalMask{} && padding, 7, 1)), 4);
  // One that says nothing leaves nothing out.
  static_assert(!attune::detail::SaysEnd<attune::QueryPaddingMask<8>, 8>);
  EXPECT_EQ((kv_end<8>(attune::QueryPaddingMask<8>{} && padding, 0, 1)), 4);
}
