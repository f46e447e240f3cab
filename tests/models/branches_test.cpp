#include <attune/models/branches.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using attune::NoGradient;

constexpr attune::AttentionShape kCross{.seq_len = 2, .d_model = 4, .num_heads = 2, .kv_len = 3};
using Attention = attune::MultiHeadAttention<kCross>;
using Branch = attune::detail::CrossAttentionBranch<Attention>;

template <class DMemory>
struct Context {
  attune::ConstView<Branch::Memory> memory;
  DMemory d_memory;
  attune::Context<> tokens, cross;
};

}  // namespace

TEST(CrossAttentionBranch, gives_a_memory_its_gradients_as_keys_and_as_values) {
  static Attention::Parameters parameters, gradients{}, expected{};
  static attune::detail::TapeOf<Attention, Attention::Parameters> tape;
  static Branch::ScratchOf<Attention::Parameters> scratch;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  Attention::Input x, dx, dx_by_hand;
  Attention::Output y, dy;
  Branch::Memory memory, d_memory, d_key, d_value;
  check::fill(x, rng), check::fill(dy, rng), check::fill(memory, rng);
  const Context<attune::View<Branch::Memory>> context{memory, d_memory, {}, {}};
  const attune::ConstView<Attention::Input> input(x);
  const attune::ConstView<Attention::Output> d_output(dy);

  Branch::forward(parameters, input, attune::View<Attention::Output>(y), context, tape, scratch);
  Branch::backward(parameters, input, tape, d_output, attune::View<Attention::Input>(dx), gradients, scratch,
                   context);
  Branch::forward(parameters, input, attune::View<Attention::Output>(y), context, tape, scratch);
  Attention::backward(parameters, x, memory, memory, tape, dy, dx_by_hand, d_key, d_value, expected,
                      scratch.attention);
  EXPECT_TRUE(check::same_bits(dx, dx_by_hand));
  EXPECT_TRUE(check::same_bits(gradients, expected));
  for (int i = 0; i < d_key.size; ++i) {
    EXPECT_EQ(d_memory.values[i], d_key.values[i] + d_value.values[i]);
  }
}

TEST(StreamBranch, steps_as_the_layer_does) {
  using Layer = attune::Linear<attune::LinearShape{3, 4, 4}>;
  using Step = attune::detail::StreamBranch<0, attune::detail::FeedForwardMember, Layer,
                                            attune::CacheShape{.capacity = 3}, 1>;
  using Token = attune::Tensor<float, 1, 4>;
  Layer::Parameters parameters;
  Layer::Input x;
  Layer::Output y;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  Layer::forward(parameters, x, y);
  attune::detail::Members<Step::Stream::Memory> memory;
  Step::InferenceScratch scratch;
  const attune::detail::StreamContext<decltype(memory)> context{0, memory, attune::NoMask{}, {}};
  Token of_step;
  const auto row = attune::view(std::as_const(x)).rows_at<1>(0);
  Step::forward(parameters, row, attune::View<Token>(of_step), context, scratch);
  for (int j = 0; j < 4; ++j) EXPECT_TRUE(check::same_bits(of_step(0, j), y(0, j)));
}
