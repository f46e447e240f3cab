#include <attune/models/composition.hpp>

#include "check.hpp"

namespace {

using attune::detail::Members;

struct None {};
struct AlsoNone {};

// Nothing is spent on what is empty, however often and of whatever type.
static_assert(sizeof(Members<float, None, double>) == 2 * sizeof(double));
static_assert(sizeof(Members<None, float, None, None, AlsoNone, float, None>) == 2 * sizeof(float));
static_assert(std::is_empty_v<Members<None, None>>);
static_assert(std::is_trivially_copyable_v<Members<None, float>>);

// y = 2·x. Counts its passes where a layer keeps what its backward reads.
struct Twice : attune::detail::Passes<Twice> {
  using Scalar = float;
  using Input = attune::Tensor<float, 1, 2>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  struct Tape {
    int passes;
  };
  struct Scratch {};
  struct InferenceScratch {
    int passes;
  };

  static void run(const auto&, const auto&, const auto& x, const auto& y, auto& scratch, auto&... tape) {
    ++attune::detail::on_tape(scratch, tape...).passes;
    for (int j = 0; j < Input::cols; ++j) y(0, j) = 2 * x(0, j);
  }
  static void run_backward(const auto& context, const auto&, const auto&, auto& tape, const auto& dy,
                           const auto& dx, auto&, auto&) {
    ++tape.passes;
    if constexpr (attune::kWanted<decltype(dx)>) dx(0, 0) = dx(0, 1) = 0;
    for (int i = 0; i < 2; ++i) attune::detail::add_to<Input>(context, dy, dx);
  }
};
static_assert(attune::IsLayer<Twice>);

}  // namespace

TEST(Members, are_found_by_their_number) {
  Members<float, None, int, float> members{};
  attune::detail::member<0>(members) = 1.5f;
  attune::detail::member<2>(members) = 7;
  attune::detail::member<3>(members) = 2.5f;
  const auto& constant = members;
  EXPECT_EQ(attune::detail::member<0>(constant), 1.5f);
  EXPECT_EQ(attune::detail::member<2>(constant), 7);
  EXPECT_EQ(attune::detail::member<3>(constant), 2.5f);
  static_assert(std::is_same_v<decltype(attune::detail::member<1>(members)), None>);
}

TEST(Passes, keep_values_on_the_tape_in_training_and_in_scratch_in_inference) {
  const Twice::Input x{{1, -3}};
  Twice::Output y{};
  Twice::InferenceScratch inference{};
  Twice::forward({}, x, y, inference);
  EXPECT_EQ(inference.passes, 1);
  EXPECT_EQ(y(0, 1), -6);
  Twice::Tape tape{};
  Twice::Scratch scratch;
  y = {};
  Twice::forward({}, x, y, tape, scratch, attune::Context<>{});
  EXPECT_EQ(tape.passes, 1);
  EXPECT_EQ(y(0, 1), -6);
}

TEST(Passes, give_a_gradient_only_if_it_is_wanted) {
  const Twice::Input x{{1, -3}}, dy{{4, 5}};
  Twice::Input dx{};
  Twice::Tape tape{};
  Twice::Scratch scratch;
  attune::NoParameters none;
  Twice::backward({}, x, tape, dy, dx, none, scratch);
  EXPECT_EQ(dx(0, 0), 8);
  EXPECT_EQ(dx(0, 1), 10);
  Twice::backward({}, x, tape, dy, attune::NoGradient{}, none, scratch);
  EXPECT_EQ(tape.passes, 2);
}
