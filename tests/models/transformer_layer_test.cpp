#include <attune/models/transformer_layer.hpp>

#include "check.hpp"

namespace {

using Tokens = attune::LinearShape;
using Part = attune::Linear<Tokens{3, 4, 4}>;
using Norm = attune::RmsNorm<attune::NormShape{3, 4}>;

struct Sets {
  Part::Parameters self_attention, feed_forward;
  Norm::Parameters norm1, norm2;
};
template <attune::BranchOptions options>
using Branches =
    attune::detail::ResidualStack<options, Norm,
                                  attune::detail::LayerBranch<attune::detail::SelfAttentionMember, Part>,
                                  attune::detail::LayerBranch<attune::detail::FeedForwardMember, Part>>;

constexpr attune::BranchOptions kBefore{attune::NormPlacement::kBefore};
constexpr attune::BranchOptions kDropping{attune::NormPlacement::kBefore, 0.5};

Sets drawn() {
  Sets sets{};
  attune::Rng rng(1);
  attune::initialize(sets.self_attention, attune::LinearDefault{}, rng);
  attune::initialize(sets.feed_forward, attune::LinearDefault{}, rng);
  attune::initialize(sets.norm1, attune::LinearDefault{}, rng);
  attune::initialize(sets.norm2, attune::LinearDefault{}, rng);
  return sets;
}

}  // namespace

TEST(ResidualStack, training_and_inference_compute_the_same) {
  using Of = Branches<kBefore>;
  const Sets sets = drawn();
  attune::Tensor<float, 3, 4> x, y, inferred;
  attune::Rng rng(2);
  check::fill(x, rng);
  Of::TapeOf<Sets> tape{};
  Of::ScratchOf<Sets> scratch{};
  Of::InferenceScratch inference{};
  Of::forward(sets, x, y, tape, scratch, attune::Context<>{});
  Of::forward(sets, x, inferred, inference, attune::Context<>{});
  EXPECT_TRUE(check::same_bits(y, inferred));
  EXPECT_FALSE(check::same_bits(x, y));
}

TEST(ResidualStack, drop_before_they_add_each_by_its_own_mask) {
  using Of = Branches<kDropping>;
  Sets sets = drawn();
  for (Part::Parameters* branch : {&sets.self_attention, &sets.feed_forward}) {
    for (float& value : branch->weight.values) value = 0;
    for (float& value : branch->bias.values) value = 1;
  }
  const attune::Tensor<float, 3, 4> zeros{};
  attune::Tensor<float, 3, 4> y;
  Of::TapeOf<Sets> tape{};
  Of::ScratchOf<Sets> scratch{};
  Of::forward(sets, zeros, y, tape, scratch, attune::Context<>{});
  bool once = false, twice = false;
  for (int i = 0; i < y.size; ++i) {
    const float first = tape.sums[0].values[i], second = y.values[i] - first;
    EXPECT_TRUE((first == 0 || first == 2) && (second == 0 || second == 2));  // what is kept is doubled
    once |= first != second;
    twice |= first == second;
  }
  EXPECT_TRUE(once && twice);
}
