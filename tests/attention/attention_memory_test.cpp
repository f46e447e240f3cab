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
using Lean = attune::MultiHeadAttention<
    attune::AttentionShape{.seq_len = 40, .d_model = 8, .num_heads = 2, .keep_weights = false}>;
static_assert(attune::kernels::kCopiesTransposed<float> ||
              sizeof(Lean::InferenceScratch::weights) == sizeof(float) * 8 * 40);
static_assert(attune::kernels::kCopiesTransposed<float> ||
              sizeof(Lean::InferenceScratch) < sizeof(Lean::Tape) + sizeof(Lean::Scratch));

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
