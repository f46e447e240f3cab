#include <attune/dropout.hpp>

#include "check.hpp"

namespace {

using attune::DropoutShape;
using Layer = attune::Dropout<DropoutShape{.rows = 20, .d_model = 50, .probability = 0.25}>;
using Never = attune::Dropout<DropoutShape{.rows = 2, .d_model = 3, .probability = 0}>;

Layer::Input x, y, dy, dx;

// The mask of a seed: what forward makes of ones.
void draw_mask(std::uint64_t seed, Layer::Output& mask) {
  for (float& value : x.values) value = 1;
  Layer::Tape tape{seed};
  Layer::Scratch scratch;
  Layer::forward({}, x, mask, tape, scratch);
}

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
  draw_mask(tape.seed, y);
  Layer::backward({}, x, tape, dy, dx, gradients, scratch);
  Layer::backward({}, x, without_dx, dy, gradients, scratch);
  EXPECT_EQ(tape.seed, without_dx.seed);
  draw_mask(tape.seed, second);
  int both = 0;
  for (int i = 0; i < y.size; ++i) both += y.values[i] == 0.0f && second.values[i] == 0.0f;
  // Independent masks share 1000/16 dropped elements, standard deviation 7.7; equal ones share 250.
  EXPECT_NEAR(both, 62, 31);
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
  EXPECT_EQ(hash.value(), check::by_policy(0xB654EDA1u, 0xB654EDA1u));
}
