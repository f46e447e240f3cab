#include <attune/models/sequential_memory.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using First = attune::Linear<attune::LinearShape{2, 3, 4}>;
using Second = attune::Linear<attune::LinearShape{2, 4, 5}>;
using Drop = attune::Dropout<attune::DropoutShape{2, 4, 0.5}>;
constexpr First::Parameters kFirst{};
using Constant = attune::Frozen<First, kFirst>;

template <class... Layers>
using Gradients = typename attune::Sequential<Layers...>::Parameters;

// What backward reads is on the tape; what it does not, in scratch.
using Trained = attune::detail::SequentialMemory<First, Drop, Second>;
using OfTrained = Gradients<First, Drop, Second>;
static_assert(!Trained::kKeepsOutput<OfTrained, 0> && Trained::kKeepsOutput<OfTrained, 1>);
static_assert(Trained::kInScratch<OfTrained, 0> == 2 * 4 && Trained::kInScratch<OfTrained, 1> == 0);
static_assert(Trained::All<OfTrained>::kDrops && Trained::kFirstTrained<OfTrained> == 0);

// Constants at the front are inferred, and nothing before what is trained is gone back to.
using Partly = attune::detail::SequentialMemory<Constant, Second>;
using OfPartly = Gradients<Constant, Second>;
static_assert(Partly::kInferred == 1 && !Partly::kAllFixed && Partly::kFirstTrained<OfPartly> == 1);
static_assert(std::is_empty_v<Partly::KeptOf<OfPartly, 0>::Tape>);
static_assert(attune::detail::SequentialMemory<Constant>::kAllFixed);

}  // namespace

TEST(SequentialMemory, goes_through_layers_in_their_order) {
  int next = 0;
  Trained::for_each_index([&next]<int index>() { EXPECT_EQ(index, next++); });
  EXPECT_EQ(next, 3);
}
