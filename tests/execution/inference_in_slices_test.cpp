#include <attune/execution/inference_in_slices.hpp>

#include <attune/attention/multi_head_attention.hpp>

#include "check.hpp"

namespace {

// Queries in two blocks of a scratch, of which the second is not whole.
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 37, .d_model = 4, .num_heads = 2}>;

template <int most_work, class Products = attune::FloatProducts>
void expect_same_bits(const Products& products = {}) {
  static Layer::Parameters parameters;
  static Layer::Input x;
  static Layer::Output y, expected;
  static Layer::InferenceScratch scratch, other;
  attune::Rng rng(4);
  check::fill_set(parameters, rng);
  check::fill(x, rng);
  attune::KeyPaddingMask<37> mask;
  EXPECT_EQ(mask.set_length(30), attune::Status::kOk);
  attune::infer<Layer>(parameters, x, expected, other, mask, products);
  auto interrupted = attune::infer_in_slices<Layer, most_work>(parameters, x, y, scratch, mask);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(interrupted.advance());
  auto prediction = attune::infer_in_slices<Layer, most_work>(parameters, x, y, scratch, mask, products);
  int slices = 0;
  while (prediction.advance()) {
    EXPECT_EQ(prediction.status(), prediction.done() ? attune::Status::kOk : attune::Status::kUnderWay);
    ++slices;
  }
  EXPECT_EQ(prediction.status(), attune::Status::kOk);
  EXPECT_FALSE(prediction.advance());
  EXPECT_GT(slices, 8);
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(InferenceInSlices, has_the_bits_of_forward) {
  expect_same_bits<1>();
  expect_same_bits<3000>();
  expect_same_bits<attune::kSliceWork>();
  expect_same_bits<1>(attune::Int8CacheProducts{});
}

}  // namespace
