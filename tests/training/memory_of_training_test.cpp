#include <attune/training/memory_of_training.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 2}>;

}  // namespace

TEST(MemoryOfTraining, is_reported_layer_by_layer) {
  using First = attune::Linear<attune::LinearShape{4, 3, 4}>;
  using M = attune::Sequential<First, Attention>;
  using Trainer = attune::Trainer<M>;
  constexpr attune::MemoryReport first = Trainer::memory_of_layer<0>(),
                                 second = Trainer::memory_of_layer<1>();
  static_assert(first.parameters == sizeof(First::Parameters) && first.gradients == first.parameters);
  static_assert(first.tape == 0 && first.scratch == 0);
  static_assert(first.parameters + second.parameters == Trainer::memory().parameters);
  static_assert(second.moments == sizeof(attune::AdamW::Moments<Attention::Parameters>));
  static_assert(second.tape == sizeof(Attention::Tape) && second.scratch == sizeof(Attention::Scratch));
  EXPECT_EQ(first.parameters, sizeof(First::Parameters));
}
