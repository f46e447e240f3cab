#include <attune/models/transformer_layer.hpp>

#include "check.hpp"

namespace {

using Tokens = attune::LinearShape;
using Part = attune::Linear<Tokens{3, 4, 4}>;
using Norm = attune::RmsNorm<attune::NormShape{3, 4}>;

// A set, or a tape, of two branches.
struct Both {
  template <int index>
  static auto& branch(auto& set) {
    return set.branches[index];
  }
  template <int index>
  static auto& norm(auto& set) {
    return set.norms[index];
  }
};
struct Sets {
  Part::Parameters branches[2];
  Norm::Parameters norms[2];
};
template <attune::BranchOptions options>
using Branches = attune::detail::ResidualBranches<options, Both, Norm, attune::detail::LayerBranch<Part>,
                                                  attune::detail::LayerBranch<Part>>;
template <class Of>
struct Tape : Of::Tape {
  Part::Tape branches[2];
};
struct Context {
  attune::NoMask mask;
  attune::InOneGo pieces{};
};

constexpr attune::BranchOptions kBefore{attune::NormPlacement::kBefore};
constexpr attune::BranchOptions kDropping{attune::NormPlacement::kBefore, 0.5};

Sets drawn() {
  Sets sets{};
  attune::Rng rng(1);
  for (auto& branch : sets.branches) attune::initialise(branch, attune::LinearDefault{}, rng);
  for (auto& norm : sets.norms) attune::initialise(norm, attune::LinearDefault{}, rng);
  return sets;
}

}  // namespace

TEST(ResidualBranches, training_and_inference_compute_the_same) {
  using Of = Branches<kBefore>;
  const Sets sets = drawn();
  attune::Tensor<float, 3, 4> x, y, inferred;
  attune::Rng rng(2);
  check::fill(x, rng);
  Tape<Of> tape{};
  Of::ScratchOf<Sets> scratch{};
  Of::InferenceScratch inference{};
  Of::forward(sets, x, y, tape, scratch, Context{});
  Of::infer(sets, x, inferred, inference, Context{});
  EXPECT_TRUE(check::same_bits(y, inferred));
  EXPECT_FALSE(check::same_bits(x, y));
}

TEST(ResidualBranches, drop_before_they_add_each_by_its_own_mask) {
  using Of = Branches<kDropping>;
  Sets sets = drawn();
  for (auto& branch : sets.branches) {
    for (float& value : branch.weight.values) value = 0;
    for (float& value : branch.bias.values) value = 1;
  }
  const attune::Tensor<float, 3, 4> zeros{};
  attune::Tensor<float, 3, 4> y;
  Tape<Of> tape{};
  Of::ScratchOf<Sets> scratch{};
  Of::forward(sets, zeros, y, tape, scratch, Context{});
  bool once = false, twice = false;
  for (int i = 0; i < y.size; ++i) {
    const float first = tape.sums[0].values[i], second = y.values[i] - first;
    EXPECT_TRUE((first == 0 || first == 2) && (second == 0 || second == 2));  // what is kept is doubled
    once |= first != second;
    twice |= first == second;
  }
  EXPECT_TRUE(once && twice);
}
