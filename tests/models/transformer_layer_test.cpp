#include <attune/models/transformer_layer.hpp>

#include "check.hpp"

namespace {

using Plain = attune::detail::Branches<attune::DropoutShape{3, 4, 0.0}, float, 2>;
using Dropping = attune::detail::Branches<attune::DropoutShape{3, 4, 0.5}, float, 2>;
static_assert(std::is_empty_v<Plain::Tape> && std::is_empty_v<Plain::Scratch>);

}  // namespace

TEST(Branches, without_dropout_add_their_input) {
  attune::Tensor<float, 3, 4> x, branch;
  attune::Rng rng(1);
  check::fill(x, rng);
  check::fill(branch, rng);
  const auto before = branch;
  Plain::add<0>(x.data(), branch.data(), {});
  for (int i = 0; i < x.size; ++i) EXPECT_EQ(branch.values[i], before.values[i] + x.values[i]);
}

TEST(Branches, drop_before_they_add_each_by_its_own_mask) {
  attune::Tensor<float, 3, 4> zeros{}, first, second;
  for (int i = 0; i < first.size; ++i) first.values[i] = second.values[i] = 1;
  Dropping::Tape tape{};
  Dropping::add<0>(zeros.data(), first.data(), tape);
  Dropping::add<1>(zeros.data(), second.data(), tape);
  for (const float value : first.values) EXPECT_TRUE(value == 0 || value == 2);  // what is kept is doubled
  EXPECT_FALSE(check::same_bits(first, second));
}
