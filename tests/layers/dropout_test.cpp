#include <attune/layers/dropout.hpp>

#include "check.hpp"

namespace {

using attune::DropoutShape;
using Layer = attune::Dropout<DropoutShape{.rows = 20, .d_model = 50, .probability = 0.25}>;
using Never = attune::Dropout<DropoutShape{.rows = 2, .d_model = 3, .probability = 0}>;

Layer::Input x, y, dy, dx;

// The mask of a position: what forward makes of ones.
template <class AnyLayer = Layer>
void draw_mask(std::uint64_t position, Layer::Output& mask) {
  for (float& value : x.values) value = 1;
  typename AnyLayer::Tape tape{position};
  typename AnyLayer::Scratch scratch;
  AnyLayer::forward({}, x, mask, tape, scratch);
}

// How many elements both masks drop. Independent ones share 1000/16, standard deviation 7.7; equal ones 250.
int dropped_by_both(const Layer::Output& a, const Layer::Output& b) {
  int both = 0;
  for (int i = 0; i < a.size; ++i) both += a.values[i] == 0.0f && b.values[i] == 0.0f;
  return both;
}

struct Pair {
  Layer::Tape first;
  Never::Tape none;
  Layer::Tape second;
  void for_each_dropout(const auto& visitor) {
    attune::detail::for_each_dropout(visitor, first, none, second);
  }
};

}  // namespace

TEST(Dropout, drops_its_share_and_scales_the_rest) {
  draw_mask(1, y);
  int dropped = 0;
  for (const float value : y.values) {
    EXPECT_TRUE(value == 0.0f || value == 4.0f / 3.0f);
    dropped += value == 0.0f;
  }
  // Binomial with n = 1000, p = ¼: standard deviation 13.7; four of them.
  EXPECT_NEAR(dropped, 250, 55);
}

TEST(Dropout, backward_has_the_mask_of_forward) {
  attune::Rng rng(2);
  check::fill(dy, rng, 1, 2);
  Layer::Tape tape{77};
  Layer::Scratch scratch;
  Layer::Parameters gradients;
  draw_mask(77, y);
  Layer::backward({}, x, tape, dy, dx, gradients, scratch);
  for (int i = 0; i < x.size; ++i) EXPECT_EQ(dx.values[i], dy.values[i] * y.values[i]);
}

TEST(Dropout, every_step_has_a_mask_of_its_own) {
  static Layer::Output second;
  Layer::Tape tape{5}, without_dx{5};
  Layer::Scratch scratch;
  Layer::Parameters gradients;
  draw_mask(tape.position, y);
  Layer::backward({}, x, tape, dy, dx, gradients, scratch);
  Layer::backward({}, x, without_dx, dy, attune::NoGradient{}, gradients, scratch);
  EXPECT_EQ(tape.position, without_dx.position);
  draw_mask(tape.position, second);
  EXPECT_NEAR(dropped_by_both(y, second), 62, 31);
}

TEST(Dropout, a_mask_does_not_depend_on_earlier_masks) {
  Layer::Tape per_sequence{5}, skipped{5};
  Layer::Scratch scratch;
  Layer::Parameters gradients;
  for (int n = 0; n < 20; ++n) Layer::backward({}, x, per_sequence, dy, dx, gradients, scratch);
  attune::skip_masks(skipped, 20);
  EXPECT_EQ(per_sequence.position, skipped.position);
  attune::skip_masks(skipped, -20);
  EXPECT_EQ(skipped.position, 5u);
}

TEST(Dropout, streams_have_masks_of_their_own_in_every_sequence) {
  using Other = attune::Dropout<DropoutShape{.rows = 20, .d_model = 50, .probability = 0.25, .stream = 1}>;
  static Layer::Output other;
  draw_mask<Other>(5, other);
  Layer::Tape tape{5};
  for (int n = 0; n < 3; ++n, tape.skip(1)) {
    draw_mask(tape.position, y);
    EXPECT_NEAR(dropped_by_both(y, other), 62, 31);
  }
}

TEST(Dropout, seeds_of_several_masks_follow_each_other) {
  static_assert(attune::detail::DropsIn<Pair> && !attune::detail::DropsIn<Never::Tape>);
  Pair pair{};
  attune::Rng rng(6), same(6);
  attune::draw_seeds(pair, rng);
  for (const Layer::Tape& tape : {pair.first, pair.second}) {
    EXPECT_EQ(tape.position >> 32, same.next());
    EXPECT_EQ(tape.position & 0xFFFFFFFFu, same.next());
  }
  const Pair before = pair;
  attune::skip_masks(pair, 3);
  EXPECT_EQ(pair.second.position - before.second.position, pair.first.position - before.first.position);
}

TEST(Dropout, inference_is_the_identity) {
  attune::Rng rng(3);
  check::fill(x, rng);
  Layer::InferenceScratch scratch;
  Layer::forward({}, x, y, scratch);
  EXPECT_TRUE(check::same_bits(x, y));
}

TEST(Dropout, works_in_place) {
  attune::Rng rng(4);
  check::fill(x, rng);
  Layer::Tape tape{9};
  Layer::Scratch scratch;
  Layer::forward({}, x, y, tape, scratch);
  Layer::forward({}, x, x, tape, scratch);
  EXPECT_TRUE(check::same_bits(x, y));
}

TEST(Dropout, of_probability_zero_has_no_tape_and_changes_nothing) {
  static_assert(std::is_empty_v<Never::Tape> && sizeof(Layer::Tape) == 8);
  const Never::Input input{{1, -2, 3, -4, 5, -6}};
  Never::Output output, gradient;
  Never::Tape tape;
  Never::Scratch scratch;
  Never::Parameters gradients;
  Never::forward({}, input, output, tape, scratch);
  Never::backward({}, input, tape, input, gradient, gradients, scratch);
  EXPECT_TRUE(check::same_bits(input, output));
  EXPECT_TRUE(check::same_bits(input, gradient));
}

TEST(Dropout, has_the_same_mask_everywhere) {
  draw_mask(42, y);
  check::BitHash hash;
  for (const float value : y.values) hash.add(value);
  EXPECT_EQ(hash.value(), check::by_policy(0xA9FDC8E9u, 0xA9FDC8E9u));
}
