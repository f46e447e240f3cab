#include <attune/training/lifecycle.hpp>

#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using LinearParameters = Linear<LinearShape{1, 2, 3}>::Parameters;

// What is left of a trainer when it only begins.
struct State {
  using Parameters = LinearParameters;
  using Gradients = Parameters;
  Parameters parameters{};
  Status is = Status::kOk;

  [[nodiscard]] Status check() const { return is; }
  Status claim() { return is; }
};
class Beginner : public TrainingLifecycle<Beginner, State> {
 public:
  State own{};
  LinearParameters& parameters = own.parameters;
  int restarts = 0, begun = 0;
  std::uint32_t drawn = 0;  // by the last restart

  State& own_state() { return own; }
  void begin_at_state() { ++begun; }
  void restart(Rng& rng) {
    ++restarts;
    drawn = rng.next();
  }
};

}  // namespace

TEST(StartingPoint, a_restart_draws_after_the_parameters) {
  Beginner beginner;
  Rng rng(1), expected(1);
  beginner.initialize(XavierUniform{}, rng);
  LinearParameters parameters;
  initialize(parameters, XavierUniform{}, expected);
  EXPECT_TRUE(check::same_bits(beginner.parameters, parameters));
  EXPECT_EQ(beginner.drawn, expected.next());
  EXPECT_EQ(rng.next(), expected.next());  // it has moved on
  EXPECT_EQ(beginner.restarts, 1);
}

TEST(StartingPoint, given_parameters_replace_drawn_ones) {
  Beginner drawn, given;
  drawn.initialize(XavierUniform{}, Rng{2});
  given.start_from([](LinearParameters& set) { set.bias(0, 1) = 7; }, XavierUniform{}, Rng{2});
  EXPECT_EQ(given.parameters.bias(0, 1), 7.0f);
  given.parameters.bias(0, 1) = drawn.parameters.bias(0, 1);
  EXPECT_TRUE(check::same_bits(given.parameters, drawn.parameters));
  EXPECT_EQ(given.drawn, drawn.drawn);
}

TEST(StartingPoint, parameters_that_are_refused_do_not_restart) {
  Beginner beginner;
  beginner.load(LinearParameters{}, Rng{3});
  EXPECT_EQ(beginner.restarts, 1);
  EXPECT_EQ(beginner.load([](LinearParameters&) { return Status::kCutShort; }), Status::kCutShort);
  EXPECT_EQ(beginner.restarts, 1);
  EXPECT_EQ(beginner.load([](LinearParameters& set) { return set.weight(0, 0) = 1, Status::kOk; }), Status::kOk);
  EXPECT_EQ(beginner.restarts, 2);
  EXPECT_EQ(beginner.parameters.weight(0, 0), 1.0f);
}

TEST(StartingPoint, a_state_that_is_refused_changes_nothing) {
  Beginner beginner;
  State other{};
  other.parameters.weight(0, 0) = 7;
  other.is = Status::kOtherState;
  EXPECT_EQ(beginner.resume(other), Status::kOtherState);
  EXPECT_EQ(beginner.begun, 0);
  EXPECT_EQ(beginner.parameters.weight(0, 0), 0.0f);
  other.is = Status::kOk;
  EXPECT_EQ(beginner.resume(other), Status::kOk);
  EXPECT_EQ(beginner.begun, 1);
  EXPECT_EQ(beginner.parameters.weight(0, 0), 7.0f);
  // Read in place, it begins there whatever the answer.
  EXPECT_EQ(beginner.resume([](State&) { return Status::kCutShort; }), Status::kCutShort);
  EXPECT_EQ(beginner.begun, 2);
}
