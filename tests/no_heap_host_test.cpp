// Nothing in the library allocates: the heap is counted by the host port. (Firmware proves it by linking
// without one.)
#include <memory>

#include <attune/attune.hpp>

#include "check.hpp"
#include "port.hpp"
#include "training/batch_data.hpp"

namespace {

template <attune::AttentionShape shape, class Scalar>
void expect_no_heap() {
  using Layer = attune::MultiHeadAttention<shape, Scalar>;
  using Optimizer = attune::Adam<attune::AdamVariant{}, Scalar>;
  using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, Optimizer, 2>;
  static Trainer trainer;
  static check::Batch<Trainer> data;
  static typename Layer::Output y;
  static typename Layer::InferenceScratch scratch;
  attune::Rng rng(1);
  data.draw(rng);
  attune::KeyPaddingMask<shape.kv_len> keys;
  const std::size_t before = port::heap_calls();

  trainer.initialize(attune::XavierUniform{}, rng);
  attune::StepResult<Scalar> result{};
  for (int i = 0; i < 2; ++i) {
    result = trainer.step(data.x, data.target, {.learning_rate = Scalar(1e-3)},
                          attune::GradientClipping{1.0f}, attune::CausalMask{} && keys);
  }
  Layer::forward(trainer.parameters(), attune::view(data.x).template rows_at<shape.seq_len>(0), y, scratch);
  const std::uint32_t hash = attune::hash_bits(trainer.parameters());

  EXPECT_EQ(port::heap_calls(), before);
  EXPECT_TRUE(result.ok());
  EXPECT_NE(hash, 0u);
}

}  // namespace

TEST(NoHeap, the_counter_counts) {
  const std::size_t before = port::heap_calls();
  const auto block = std::make_unique<volatile int>(1);
  EXPECT_GT(port::heap_calls(), before);
  EXPECT_EQ(*block, 1);
}

TEST(NoHeap, forward_backward_and_step_never_allocate) {
  expect_no_heap<attune::AttentionShape{.seq_len = 4, .d_model = 4, .num_heads = 1}, float>();
  expect_no_heap<attune::AttentionShape{.seq_len = 16, .d_model = 32, .num_heads = 4}, float>();
  expect_no_heap<attune::AttentionShape{.seq_len = 7, .d_model = 9, .num_heads = 3, .bias = false}, double>();
}

// d_model 512 and 8 heads: "Attention Is All You Need", table 3, base model.
TEST(NoHeap, the_paper_s_width_trains_without_a_heap) {
  expect_no_heap<attune::AttentionShape{.seq_len = 8, .d_model = 512, .num_heads = 8}, float>();
}
