// Masks that are options of a shape are the masks of the same name.
#include <attune/attention/option_masks.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

using attune::AttentionShape;

constexpr AttentionShape kPlain{.seq_len = 5, .d_model = 6, .num_heads = 3};
constexpr AttentionShape kWithOptions{
    .seq_len = 5,
    .d_model = 6,
    .num_heads = 3,
    .window = {.left = 2, .right = 1, .sinks = 1, .own_key = attune::OwnKey::kHidden},
    .alibi = true,
    .offset = 1};
constexpr attune::SlidingWindowMask kWindow{
    .left = 2, .right = 1, .sinks = 1, .offset = 1, .own_key = attune::OwnKey::kHidden};
constexpr attune::AlibiBias<3> kAlibi{.offset = 1};

constexpr struct { attune::NoParameters relative; } kNoParameters{};  // of options without any
template <AttentionShape shape>
using Options = attune::detail::AttentionParameters<shape, float>;

template <AttentionShape shape>
struct Run {
  using Layer = attune::MultiHeadAttention<shape>;
  typename Layer::Parameters parameters, gradients{};
  typename Layer::Input x, dx;
  typename Layer::Output y, inferred;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  void operator()(const auto& mask) {
    attune::Rng rng(3);
    check::fill_set(parameters, rng);
    check::fill(x, rng);
    attune::infer<Layer>(parameters, x, inferred, inference, mask);
    attune::forward<Layer>(parameters, x, y, tape, scratch, mask);
    attune::backward<Layer>(parameters, x, tape, y, dx, gradients, scratch, mask);
    EXPECT_TRUE(check::same_bits(inferred, y));
  }
};

void expect_same(const auto& of_options, const auto& given) {
  static const Run<kWithOptions> no_options{};  // a temporary makes clang 16 crash
  static const Run<kPlain> nothing{};
  static Run<kWithOptions> options;
  static Run<kPlain> plain;
  options = no_options;
  plain = nothing;
  options(of_options);
  plain(given);
  EXPECT_TRUE(check::same_bits(options.y, plain.y));
  EXPECT_TRUE(check::same_bits(options.dx, plain.dx));
  EXPECT_EQ(std::memcmp(&options.gradients, &plain.gradients, sizeof plain.gradients), 0);
}

}  // namespace

TEST(OptionMasks, are_the_masks_of_the_same_name) { expect_same(attune::NoMask{}, kWindow && kAlibi); }

TEST(OptionMasks, combine_with_the_given_mask) {
  attune::KeyPaddingMask<5> padding;
  EXPECT_EQ(padding.set_length(4), attune::Status::kOk);
  expect_same(padding && attune::CausalMask{}, kWindow && kAlibi && (padding && attune::CausalMask{}));
}

TEST(OptionMasks, a_shape_without_any_leaves_the_mask_as_it_is) {
  const attune::CausalMask mask;
  const attune::CausalMask& same = attune::detail::with_options<Options<kPlain>>(kNoParameters, mask);
  EXPECT_TRUE(&same == &mask);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(attune::detail::with_options<Options<kPlain>>(
                                   kNoParameters, attune::NoMask{}))>,
                               attune::NoMask>);
}

TEST(OptionMasks, no_mask_hides_appended_keys) {
  constexpr AttentionShape kAppended{
      .seq_len = 2, .d_model = 4, .num_heads = 1, .kv_len = 3, .add_bias_kv = true, .add_zero_attn = true};
  attune::KeyPaddingMask<3> nothing;
  nothing.set_valid({false, false, false});
  const auto mask = attune::detail::with_options<Options<kAppended>>(kNoParameters, nothing);
  float row[5] = {1, 2, 3, 4, 5};
  mask.template hide<5>(0, 0, row);
  mask.template bias<5>(0, 0, row);
  for (int key = 0; key < 3; ++key) EXPECT_EQ(row[key], -check::kInfinity<float>);
  EXPECT_EQ(row[3], 4.0f);
  EXPECT_EQ(row[4], 5.0f);
}
