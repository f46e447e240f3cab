#include <attune/training/batch.hpp>

#include <array>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/training/cross_entropy.hpp>

#include "check.hpp"

namespace {

using attune::detail::InputsOf;
using attune::detail::TargetsOf;
using Rows = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
using Tokens = attune::Embedding<attune::EmbeddingShape{.seq_len = 3, .vocabulary = 5, .d_model = 4}>;

static_assert(!attune::detail::TakesIds<Rows> && attune::detail::TakesIds<Tokens>);
static_assert(std::is_void_v<attune::detail::ForwardResult<Rows>>);
static_assert(std::is_same_v<attune::detail::ForwardResult<Tokens>, attune::Status>);

}  // namespace

TEST(Batch, of_matrices_is_one_below_the_other) {
  using Inputs = InputsOf<Rows, 4>;
  using Targets = TargetsOf<attune::MeanSquaredError, Rows::Output, 4>;
  static_assert(std::is_same_v<Inputs::Storage, attune::Tensor<float, 8, 3>>);
  static_assert(std::is_same_v<Targets::Storage, attune::Tensor<float, 8, 4>>);
  Inputs::Storage x{};
  x(6, 1) = 5;
  EXPECT_EQ(Inputs::at(x, 3)(0, 1), 5.0f);
  EXPECT_EQ(Inputs::at(x, 3).data, &x(6, 0));
}

TEST(Batch, of_ids_is_one_after_the_other) {
  using Inputs = InputsOf<Tokens, 4>;
  using Targets = TargetsOf<attune::CrossEntropy<>, Rows::Output, 4>;
  static_assert(sizeof(Inputs::Storage) == 4 * 3 * sizeof(int));
  static_assert(sizeof(Targets::Storage) == 4 * 2 * sizeof(int));
  const Inputs::Storage ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const Targets::Storage classes{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(Inputs::at(ids, 2)[1], 7);
  EXPECT_EQ(Inputs::at(ids, 3).data(), &ids[9]);
  EXPECT_EQ(Targets::at(classes, 1)[0], 2);
}

TEST(Batch, neighbors_have_one_mask_or_several) {
  using attune::detail::have_one_mask;
  std::array<attune::BothMasks<attune::CausalMask, attune::SequenceLength<4>>, 4> masks{};
  EXPECT_TRUE(have_one_mask<4>(masks, 0));
  EXPECT_EQ(masks[3].second.set_length(2), attune::Status::kOk);
  EXPECT_FALSE(have_one_mask<4>(masks, 0));
  EXPECT_TRUE(have_one_mask<3>(masks, 0));
  EXPECT_FALSE(have_one_mask<2>(masks, 2));
  EXPECT_TRUE(have_one_mask<4>(masks[3], 0));  // of all of them
}
