#include <attune/attention/window_mask.hpp>

#include "check.hpp"

namespace {

using attune::kUnlimited;
using attune::SlidingWindowMask;

constexpr int kKeys = 9;

template <class Mask>
void expect_visible(const Mask& mask, int query, const auto& sees) {
  attune::Tensor<float, 3, kKeys> rows{};  // nothing is written around the second one
  mask.template hide<kKeys>(0, query, &rows(1, 0));
  mask.template bias<kKeys>(0, query, &rows(1, 0));
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(rows(1, key), sees(key) ? 0 : -check::kInfinity<float>);
    EXPECT_EQ(rows(0, key), 0);
    EXPECT_EQ(rows(2, key), 0);
  }
}

static_assert(attune::AttentionMask<SlidingWindowMask>);
static_assert(!attune::AttentionWindow{.sinks = 3}.hides() && attune::AttentionWindow{.right = 0}.hides() &&
              attune::AttentionWindow{.own_key = attune::OwnKey::kHidden}.hides());

}  // namespace

TEST(SlidingWindowMask, shows_the_keys_of_its_definition) {
  for (const int left : {0, 1, 4, 8, kUnlimited}) {
    for (const int right : {0, 2, 8, kUnlimited}) {
      for (const int sinks : {0, 2, 9, 20}) {
        for (const int offset : {-3, 0, 5, 20}) {
          const SlidingWindowMask mask{.left = left, .right = right, .sinks = sinks, .offset = offset};
          for (int query = 0; query < 6; ++query) {
            const long long position = query + offset;
            expect_visible(mask, query, [&](int key) {
              return key <= position + right && (key >= position - left || key < sinks);
            });
          }
        }
      }
    }
  }
}

TEST(SlidingWindowMask, hides_the_key_of_the_query_itself_also_if_it_is_a_sink) {
  for (const int offset : {-3, 0, 5, 20}) {
    const SlidingWindowMask mask{
        .left = 3, .right = 2, .sinks = 2, .offset = offset, .own_key = attune::OwnKey::kHidden};
    for (int query = 0; query < 6; ++query) {
      const int position = query + offset;
      expect_visible(mask, query, [&](int key) {
        return key != position && key <= position + 2 && (key >= position - 3 || key < 2);
      });
    }
  }
}

TEST(SlidingWindowMask, without_a_right_side_is_the_causal_mask) {
  for (int offset = -2; offset < 4; ++offset) {
    const SlidingWindowMask window{.right = 0, .offset = offset};
    for (int query = 0; query < 6; ++query) {
      expect_visible(attune::CausalMask{offset}, query, [&](int key) { return key <= query + offset; });
      expect_visible(window, query, [&](int key) { return key <= query + offset; });
    }
  }
}

TEST(SlidingWindowMask, composes_with_other_masks) {
  attune::KeyPaddingMask<kKeys> padding;
  EXPECT_EQ(padding.set_length(4), attune::Status::kOk);
  expect_visible(SlidingWindowMask{.left = 2, .sinks = 1} && attune::CausalMask{} && padding, 5,
                 [](int key) { return key == 0 || key == 3; });
}

TEST(SlidingWindowMask, keeps_the_sinks_at_positions_beyond_all_keys) {
  expect_visible(SlidingWindowMask{.left = 3, .right = 0, .sinks = 2, .offset = 1 << 30}, 4,
                 [](int key) { return key < 2; });
  expect_visible(SlidingWindowMask{.left = 3, .right = 1, .sinks = 2, .offset = -(1 << 30)}, 4,
                 [](int) { return false; });
}
