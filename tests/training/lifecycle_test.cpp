#include <attune/training/lifecycle.hpp>

#include <bit>
#include <cstdint>

#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/sgd.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using Model = Sequential<Linear<LinearShape{1, 2, 3}>, Dropout<DropoutShape{1, 3, 0.5}>>;
using Parameters = Model::Parameters;
using State = TrainingState<Model, Sgd<>>;

// What is left of a trainer when it only begins.
class Beginner : public TrainingLifecycle<Beginner, State> {
 public:
  State own{};
  Model::Tape tape{};
  int begun = 0;

  float& bias() { return own.parameters.layer<0>().bias(0, 1); }
  static auto& own_state(auto& self) { return self.own; }
  auto& own_tape() { return tape; }
  void begin_at_state() { ++begun; }
};

}  // namespace

TEST(StartingPoint, a_restart_draws_after_the_parameters) {
  Beginner beginner;
  Rng rng(1), expected(1);
  beginner.initialize(XavierUniform{}, rng);
  Parameters parameters;
  initialize(parameters, XavierUniform{}, expected);
  EXPECT_TRUE(check::same_bits(beginner.own.parameters, parameters));
  EXPECT_EQ(beginner.state().masks.generator, std::bit_cast<std::uint64_t>(expected));
  expected.next(), expected.next();  // the start of a mask
  EXPECT_EQ(rng.next(), expected.next());
  EXPECT_EQ(beginner.begun, 1);
}

TEST(StartingPoint, given_parameters_replace_drawn_ones) {
  Beginner drawn, given;
  drawn.initialize(XavierUniform{}, Rng{2});
  given.start_from([](Parameters& set) { set.layer<0>().bias(0, 1) = 7; }, XavierUniform{}, Rng{2});
  EXPECT_EQ(given.bias(), 7.0f);
  given.bias() = drawn.bias();
  EXPECT_TRUE(check::same_bits(given.own, drawn.own));
}

TEST(StartingPoint, parameters_that_are_refused_do_not_restart) {
  Beginner beginner;
  beginner.load(Parameters{}, Rng{3});
  EXPECT_EQ(beginner.begun, 1);
  EXPECT_EQ(beginner.load([](Parameters&) { return Status::kCutShort; }), Status::kCutShort);
  EXPECT_EQ(beginner.begun, 1);
  beginner.own.steps = 5;
  EXPECT_EQ(beginner.load([](Parameters& set) { return set.layer<0>().bias(0, 1) = 1, Status::kOk; }),
            Status::kOk);
  EXPECT_EQ(beginner.begun, 2);
  EXPECT_EQ(beginner.state().steps, 0u);
  EXPECT_EQ(beginner.bias(), 1.0f);
}

TEST(StartingPoint, a_state_that_is_refused_changes_nothing) {
  Beginner beginner, other;
  other.initialize(XavierUniform{}, Rng{4});
  other.bias() = 7;
  State refused = other.state();
  ++refused.fingerprint_of_type;
  EXPECT_EQ(beginner.resume(refused), Status::kOtherState);
  EXPECT_EQ(beginner.begun, 0);
  EXPECT_EQ(beginner.bias(), 0.0f);
  EXPECT_EQ(beginner.resume(other.state()), Status::kOk);
  EXPECT_EQ(beginner.begun, 1);
  EXPECT_EQ(beginner.bias(), 7.0f);
  // Read in place, it begins there whatever the answer.
  EXPECT_EQ(beginner.resume([](State&) { return Status::kCutShort; }), Status::kCutShort);
  EXPECT_EQ(beginner.begun, 2);
}
