// Recomputed weights: recomputed_attention_test.cpp. Weights on the tape: multi_head_attention_test.cpp.
#include <attune/attention/attention_memory.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 3}>;

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
