// Recomputed weights: recomputed_attention_test.cpp. Weights on the tape: multi_head_attention_test.cpp.
#include <attune/attention/attention_memory.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 3}>;

// O stands in the place of Q, but where its heads are wider.
static_assert(sizeof(Layer::InferenceScratch) == sizeof(float) * (3 * 5 * 6 + 5 * 5));
using WideValues =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 3, .d_v = 4}>;
static_assert(sizeof(WideValues::InferenceScratch) == sizeof(float) * (2 * 5 * 6 + 2 * 5 * 12 + 5 * 5));

// Where weights are not kept, inference has no more of them than training.
using Lean = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 40, .d_model = 8, .num_heads = 2, .keep_weights = false}>;
static_assert(attune::kernels::kCopiesTransposed<float> ||
              sizeof(Lean::InferenceScratch::weights) == sizeof(float) * 8 * 40);
static_assert(attune::kernels::kCopiesTransposed<float> ||
              sizeof(Lean::InferenceScratch) < sizeof(Lean::Tape) + sizeof(Lean::Scratch));

// Bytes of tape and scratch without kept weights, beyond those with them.
template <int seq_len, int d_k, int num_heads, int num_kv_heads = num_heads>
constexpr long kMore = [] {
  constexpr auto kBytes = []<bool keep_weights>() {
    using Each = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = seq_len,
                                                                   .d_model = num_heads * d_k,
                                                                   .num_heads = num_heads,
                                                                   .num_kv_heads = num_kv_heads,
                                                                   .keep_weights = keep_weights}>;
    return static_cast<long>(sizeof(typename Each::Tape) + sizeof(typename Each::Scratch));
  };
  return kBytes.template operator()<false>() - kBytes.template operator()<true>();
}();
static_assert(kMore<4, 64, 2> <= 0 && kMore<8, 16, 2> <= 0 && kMore<16, 64, 8> <= 0 &&
              kMore<32, 64, 2> <= 0 && kMore<64, 32, 4, 2> <= 0 && kMore<98, 64, 1> <= 0 &&
              kMore<256, 64, 2> <= 0);
// A single head that is one block keeps two numbers a query, and as many weights as before.
static_assert(kMore<64, 64, 1> == 64 * 2 * sizeof(float));

// With a constant W_o, O of forward stands in memory of backward, which has dO of one head.
constexpr int kOfHead = 40 * 4, kOfWeights = 8 * 40;
static_assert(sizeof(Lean::Scratch) == sizeof(float) * (2 * kOfWeights + 2 * kOfHead));
static_assert(sizeof(Lean::ScratchOf<Lean::ParametersOf<attune::Untrained, attune::Tensor>>) ==
              sizeof(Lean::Scratch) + sizeof(float) * kOfHead);

}  // namespace

TEST(AttentionMemory, is_plain_values) {
  static_assert(std::is_trivially_copyable_v<Layer::Tape> &&
                std::is_trivially_copyable_v<Layer::InferenceScratch>);
  static_assert(std::is_empty_v<Layer>);
  static_assert(sizeof(Layer::Tape) == sizeof(float) * (4 * 5 * 6 + 3 * 5 * 5));
  static_assert(sizeof(Layer::Scratch) == sizeof(float) * 5 * 5);
  using BiasesAlone = Layer::ParametersOf<attune::Untrained, attune::Tensor>;
  static_assert(sizeof(Layer::TapeOf<BiasesAlone>) + sizeof(Layer::ScratchOf<BiasesAlone>) ==
                sizeof(Layer::Tape) + sizeof(Layer::Scratch));
  EXPECT_TRUE(std::is_trivially_copyable_v<Layer::Parameters>);
}
