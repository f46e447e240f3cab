#include <attune/execution/pass.hpp>
#include <attune/layers/pooling.hpp>

#include <attune/attention/mask.hpp>

#include "check.hpp"

namespace {

using attune::PoolingKind;
using attune::PoolingShape;

template <PoolingKind kind>
using Layer = attune::Pooling<PoolingShape{.seq_len = 4, .d_model = 3, .kind = kind}>;
using Mean = Layer<PoolingKind::kMean>;
using Max = Layer<PoolingKind::kMax>;
using First = Layer<PoolingKind::kFirst>;
using Last = Layer<PoolingKind::kLast>;
// A static Trainer has no initializer before main.
static_assert(std::is_trivially_default_constructible_v<Mean::Tape>);

constexpr Mean::Input kTokens{{1, -5, 3,  //
                               5, -2, 3,  //
                               6, 8, -1,  //
                               4, 9, 0}};
constexpr Mean::Output kGradient{{3, 6, 12}};

template <class LayerType>
struct Result {
  typename LayerType::Output y;
  typename LayerType::Input dx;
};

template <class LayerType, class Mask>
Result<LayerType> pool(const Mask& mask) {
  Result<LayerType> result;
  typename LayerType::Output inferred;
  typename LayerType::Parameters none;
  typename LayerType::Tape tape;
  typename LayerType::Scratch scratch;
  typename LayerType::InferenceScratch inference;
  attune::forward<LayerType>(none, kTokens, result.y, tape, scratch, mask);
  attune::infer<LayerType>(none, kTokens, inferred, inference, mask);
  EXPECT_TRUE(check::same_bits(result.y, inferred));
  LayerType::backward(none, kTokens, tape, kGradient, result.dx, none, scratch);
  return result;
}

template <class LayerType, class Mask>
void expect(const Mask& mask, const typename LayerType::Output& y, const typename LayerType::Input& dx) {
  const auto result = pool<LayerType>(mask);
  EXPECT_EQ(check::max_difference(result.y, y), 0.0);
  EXPECT_EQ(check::max_difference(result.dx, dx), 0.0);
}

attune::KeyPaddingMask<4> first_tokens(int count) {
  attune::KeyPaddingMask<4> mask;
  EXPECT_EQ(mask.set_length(count), attune::Status::kOk);
  return mask;
}

attune::KeyPaddingMask<4> padding_alone() {
  attune::KeyPaddingMask<4> mask;
  mask.set_valid({false, false, false, false});
  return mask;
}

attune::KeyPaddingMask<4> without_the_first() {
  attune::KeyPaddingMask<4> mask;
  mask.set_valid({false, true, true, false});
  return mask;
}

}  // namespace

TEST(Pooling, of_all_tokens) {
  const attune::NoMask all;
  expect<Mean>(all, {{4, 2.5f, 1.25f}}, {{0.75f, 1.5f, 3, 0.75f, 1.5f, 3, 0.75f, 1.5f, 3, 0.75f, 1.5f, 3}});
  expect<Max>(all, {{6, 9, 3}}, {{0, 0, 12, 0, 0, 0, 3, 0, 0, 0, 6, 0}});
  expect<First>(all, {{1, -5, 3}}, {{3, 6, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  expect<Last>(all, {{4, 9, 0}}, {{0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 6, 12}});
}

TEST(Pooling, leaves_padding_out) {
  expect<Mean>(first_tokens(2), {{3, -3.5f, 3}}, {{1.5f, 3, 6, 1.5f, 3, 6, 0, 0, 0, 0, 0, 0}});
  expect<Max>(first_tokens(2), {{5, -2, 3}}, {{0, 0, 12, 3, 6, 0, 0, 0, 0, 0, 0, 0}});
  expect<First>(first_tokens(2), {{1, -5, 3}}, {{3, 6, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0}});
  expect<Last>(first_tokens(2), {{5, -2, 3}}, {{0, 0, 0, 3, 6, 12, 0, 0, 0, 0, 0, 0}});
}

TEST(Pooling, padding_may_come_first) {
  expect<Mean>(without_the_first(), {{5.5f, 3, 1}}, {{0, 0, 0, 1.5f, 3, 6, 1.5f, 3, 6, 0, 0, 0}});
  expect<Max>(without_the_first(), {{6, 8, 3}}, {{0, 0, 0, 0, 0, 12, 3, 6, 0, 0, 0, 0}});
  expect<First>(without_the_first(), {{5, -2, 3}}, {{0, 0, 0, 3, 6, 12, 0, 0, 0, 0, 0, 0}});
}

TEST(Pooling, leaves_padding_out_of_a_composed_mask) {
  // The second token alone.
  const auto both = first_tokens(2) && attune::CausalMask{} && without_the_first();
  expect<Mean>(both, {{5, -2, 3}}, {{0, 0, 0, 3, 6, 12, 0, 0, 0, 0, 0, 0}});
  expect<Max>(both, {{5, -2, 3}}, {{0, 0, 0, 3, 6, 12, 0, 0, 0, 0, 0, 0}});
  expect<First>(attune::CausalMask{} && without_the_first(), {{5, -2, 3}},
                {{0, 0, 0, 3, 6, 12, 0, 0, 0, 0, 0, 0}});
}

TEST(Pooling, of_padding_alone_is_zero_and_has_no_gradient) {
  expect<Mean>(padding_alone(), {}, {});
  expect<Max>(padding_alone(), {}, {});
  expect<First>(padding_alone(), {}, {});
}

TEST(Pooling, padding_may_hold_anything) {
  Mean::Input x = kTokens;
  for (int j = 0; j < 3; ++j) x(2, j) = x(3, j) = check::kNan<float>;
  Max::Output y;
  Max::InferenceScratch scratch;
  attune::infer<Max>({}, x, y, scratch, first_tokens(2));
  EXPECT_EQ(y.values[0], 5.0f);
  Mean::Output mean;
  Mean::InferenceScratch mean_scratch;
  attune::infer<Mean>({}, x, mean, mean_scratch, first_tokens(2));
  EXPECT_EQ(mean.values[0], 3.0f);
}

TEST(Pooling, gives_equal_largest_to_the_first_of_them) {
  const auto result = pool<Max>(attune::NoMask{});
  EXPECT_EQ(kTokens(0, 2), kTokens(1, 2));
  EXPECT_EQ(result.dx(0, 2), 12.0f);
  EXPECT_EQ(result.dx(1, 2), 0.0f);
}

namespace {

// A mask of one's own that is a KeyPaddingMask, and one that only says what is padding.
struct Derived : attune::KeyPaddingMask<4> {};
struct Own : attune::NoMask {
  template <int tokens>
  static bool keeps_key(int key) {
    return key < 2;
  }
};

}  // namespace

TEST(Pooling, supports_user_masks) {
  using OfOneFeature = attune::Pooling<attune::PoolingShape{.seq_len = 4, .d_model = 1}>;
  const OfOneFeature::Input x{{1, 3, 10, 20}};
  OfOneFeature::Output y;
  OfOneFeature::InferenceScratch none;
  Derived derived;
  EXPECT_EQ(derived.set_length(3), attune::Status::kOk);
  attune::infer<OfOneFeature>({}, x, y, none, derived);
  EXPECT_EQ(y.values[0], 14.0f / 3);
  attune::infer<OfOneFeature>({}, x, y, none, Own{});
  EXPECT_EQ(y.values[0], 2.0f);
  attune::infer<OfOneFeature>({}, x, y, none, Own{} && derived);
  EXPECT_EQ(y.values[0], 2.0f);
}

TEST(Pooling, max_pooling_propagates_nan) {
  using Largest =
      attune::Pooling<attune::PoolingShape{.seq_len = 3, .d_model = 2, .kind = attune::PoolingKind::kMax}>;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = check::kInfinity<float>;
  Largest::Output y;
  Largest::InferenceScratch none;
  for (int token = 0; token < 3; ++token) {
    Largest::Input x{{1, kInf, 2, -kInf, 3, 5}};
    x(token, 0) = kNan;
    Largest::forward({}, x, y, none);
    EXPECT_TRUE(check::is_nan(y.values[0]));
    EXPECT_EQ(y.values[1], kInf);
    x((token + 1) % 3, 0) = kInf;  // before or after
    Largest::forward({}, x, y, none);
    EXPECT_TRUE(check::is_nan(y.values[0]));
  }
}
