// tests/models/own_layer_test.cpp has two such layers in models.
#include <attune/execution/own_layer.hpp>

#include <attune/layers/linear.hpp>
#include <attune/models/frozen.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "models/own_layer/prelu.hpp"

namespace {

using namespace attune;

struct OfTokens : PRelu<4, 3> {};  // its Stream is another type's
struct WithTape : PRelu<4, 3> {
  struct Tape {
    int kept;
  };
  template <int tokens, CacheShape>
  using Stream = WithTape;
};
struct OfTokensThatMeet : PRelu<4, 3> {
  static constexpr Abilities kAbilities{};
};
static_assert(detail::RunsByToken<PRelu<4, 3>> && detail::TakesLength<PRelu<4, 3>>);
static_assert(!detail::RunsByToken<OfTokens> && !detail::RunsByToken<WithTape>);
static_assert(!detail::RunsByToken<OfTokensThatMeet> && !detail::TakesLength<OfTokensThatMeet>);
static_assert(!detail::RunsByToken<Linear<LinearShape{4, 3, 3}>>);  // it takes them by itself

template <class Layer>
using Updated = detail::ScratchOf<Layer, detail::NoGradientsKept<1>::GradientSet<Layer>>;
static_assert(sizeof(Updated<PRelu<4, 3>>) == 3 * sizeof(float));
static_assert(std::is_empty_v<Updated<Linear<LinearShape{4, 3, 3}>>>);
static_assert(std::is_empty_v<detail::ScratchOf<PRelu<4, 3>, PRelu<4, 3>::Parameters>>);

}  // namespace

TEST(OwnLayer, passes_gradients_on_after_its_backward) {
  using Layer = PRelu<2, 3>;
  Layer::Parameters parameters{{{.5f, .5f, .5f}}};
  AdamW::Moments<Layer::Parameters> moments{};
  detail::ParameterUpdates<Layer, AdamW>::Rows rows;
  detail::ParameterUpdates<Layer, AdamW> updates(parameters, moments, {.learning_rate = 0.125f}, rows);
  Updated<Layer> scratch;
  Layer::Tape tape;
  const Layer::Input x{{-1, 1, -1, -1, 1, -1}};
  Layer::Input dx;
  detail::collect<Layer>([](auto&... own) { Layer::backward(own...); }, parameters,
                         ConstView<Layer::Input>(x), tape, ConstView<Layer::Output>(x), dx, updates.leaves,
                         scratch);
  EXPECT_EQ(dx(1, 2), -.5f);  // of the slope as it was
  EXPECT_EQ(scratch.collected.slope(0, 0), 2.0f);
  EXPECT_LT(parameters.slope(0, 0), .5f);
  EXPECT_LT(parameters.slope(0, 2), .5f);
  EXPECT_TRUE(updates.ok());
}
