#include <attune/execution/context.hpp>

#include <type_traits>

#include <attune/attention/mask.hpp>
#include <attune/execution/pass.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 5;
using Layer = EncoderLayer<EncoderLayerShape{.attention = {.seq_len = kTokens, .d_model = 4, .num_heads = 2},
                                             .d_ff = 6}>;
constexpr CausalMask kCausal;  // not temporaries, which clang warns of
constexpr NoMask kNone;

// Asks its mask for padding.
struct Own : Linear<LinearShape{kTokens, 4, 4}> {
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding, .takes_context = true};
};

}  // namespace

TEST(Context, has_all_tokens_unless_a_mask_says_how_many) {
  const auto all = context_for<Layer>(kCausal);
  static_assert(!decltype(all)::kHasLength && decltype(all)::kSkipsZeros);
  static_assert(all.template count<kTokens>() == kTokens);
  const auto length = check::of_length<SequenceLength<kTokens>>(3);
  const auto some = context_for<Layer>(length);
  static_assert(decltype(some)::kHasLength && decltype(some)::kKeysHaveLength);
  EXPECT_EQ(some.template count<kTokens>(), 3);
  EXPECT_EQ(some.template count<kTokens + 1>(), kTokens + 1);  // no tokens
  EXPECT_EQ(some.template parts<2>().template count<2 * kTokens>(), 6);
}

TEST(Context, of_a_model_that_takes_no_length_has_all_tokens) {
  const auto length = check::of_length<SequenceLength<kTokens>>(3);
  const auto context = context_for<Own>(length);
  static_assert(!decltype(context)::kHasLength);
  EXPECT_FALSE(detail::keeps_key<kTokens>(context.mask(), 3));  // it is padding
}

TEST(Context, hands_out_the_valid_rows_of_tokens) {
  const detail::FirstTokens<kTokens> tokens{3};
  const auto context = Context(kNone, RunToCompletion{}, tokens, detail::AllTokens{});
  int rows = 0, elements = 0, others = 0;
  context.tokens<kTokens, 1>([&]<int count>(auto first) { rows += rows_in<count>(first); });
  context.token_elements<kTokens, 2, 1>([&](int, int count) { elements += count; });
  context.keys().tokens<kTokens, 1>([&]<int count>(auto first) { others += rows_in<count>(first); });
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(elements, 6);
  EXPECT_EQ(others, kTokens);
  Tensor<float, kTokens, 2> matrix;
  EXPECT_EQ(used_rows(context.first(view(matrix))), 3);
  static_assert(std::is_same_v<decltype(context.keys().first(view(matrix))), decltype(view(matrix))>);
}

TEST(Context, skips_zeros_only_where_something_is_hidden_and_not_finite) {
  Tensor<float, 2, 2> x{{1, 2, 3, 4}};
  static_assert(std::is_same_v<Context<>::Zeros, kernels::DenseTerms>);
  static_assert(std::is_same_v<decltype(Context<>{}.skipping_zeros(view(x))), Context<>>);
  const Context masked(kCausal);
  EXPECT_FALSE(masked.skipping_zeros(view(x)).zeros().needed());
  x(1, 1) = check::kInfinity<float>;
  EXPECT_TRUE(masked.skipping_zeros(view(x)).zeros().needed());
  // Between two slices operands may be overwritten: each product looks for itself.
  SliceAddress address;
  detail::SliceWalk walk(address, 1);
  const Context sliced(kCausal, OneSlice<1>(walk));
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(sliced.skipping_zeros(view(x)).zeros())>,
                               kernels::OwnZeroSkipping>);
}

TEST(Context, keeps_its_treatment_of_zeros_without_its_mask) {
  const Context masked(kCausal);
  static_assert(decltype(masked.without_mask())::kSkipsZeros && !decltype(masked.unmasked())::kSkipsZeros);
  static_assert(std::is_same_v<decltype(masked.without_mask())::Mask, NoMask>);
  static_assert(decltype(Context<>{}.with_mask(CausalMask{}))::kSkipsZeros);
  static_assert(std::is_same_v<decltype(masked.unmasked()), Context<>>);
}

TEST(Context, refers_to_a_mask_that_is_large_and_copies_a_small_one) {
  KeyPaddingMask<64> padding;
  const Context large(padding);
  EXPECT_EQ(&large.mask(), &padding);
  const CausalMask causal{2};
  EXPECT_TRUE(&Context(causal).mask() != &causal);
  static_assert(sizeof(Context<NoMask>) <= sizeof(void*));
}
