// Layers that keep nothing: inference and training are one function.
#include <attune/execution/layer.hpp>
#include <attune/layers/tapeless.hpp>

#include <type_traits>

#include "check.hpp"

namespace {

struct Doubled : attune::detail::Tapeless<Doubled> {
  using Scalar = float;
  using Input = attune::Tensor<float, 1, 2>;
  using Output = Input;
  using Parameters = attune::NoParameters;
  using attune::detail::Tapeless<Doubled>::forward, attune::detail::Tapeless<Doubled>::backward;
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < Output::size; ++i) y.data[i] = 2 * x.data[i];
    });
  }
  template <class Dx, attune::AnyContext Call = attune::Context<>>
  static void backward(const Parameters&, attune::ConstView<Input>, attune::ConstView<Output> dy, Dx&& dx,
                       Parameters&, const Call& = {}) {
    for (int i = 0; i < Input::size; ++i) dx(0, i) = 2 * dy(0, i);
  }
};
static_assert(attune::IsLayer<Doubled>);

// y = x², and how often backward was called.
struct Squared : attune::detail::Unparameterized<Squared> {
  using Scalar = float;
  using Input = attune::Tensor<float, 1, 2>;
  using Output = Input;
  static inline int backwards = 0;
  using Base = attune::detail::Unparameterized<Squared>;
  using Base::forward, Base::backward;
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(attune::ConstView<Input> x, attune::View<Output> y, const Call& = {}) {
    for (int i = 0; i < Output::size; ++i) y.data[i] = x.data[i] * x.data[i];
  }
  template <attune::AnyContext Call = attune::Context<>>
  static void backward(attune::ConstView<Input> x, attune::ConstView<Output> dy, attune::View<Input> dx,
                       const Call& = {}) {
    ++backwards;
    for (int i = 0; i < Input::size; ++i) dx.data[i] = 2 * x.data[i] * dy.data[i];
  }
};
static_assert(attune::IsLayer<Squared>);

}  // namespace

TEST(Tapeless, computes_the_same_in_inference_and_in_training) {
  const Doubled::Input x{{1, 2}};
  Doubled::Output inferred{}, trained{};
  Doubled::InferenceScratch inference;
  Doubled::Tape tape;
  Doubled::Scratch scratch;
  Doubled::forward({}, x, inferred, inference);
  Doubled::forward({}, x, trained, tape, scratch, attune::Context<>{});
  for (int i = 0; i < Doubled::Output::size; ++i) {
    EXPECT_EQ(inferred.values[i], 2 * x.values[i]);
    EXPECT_EQ(trained.values[i], 2 * x.values[i]);
  }
}

TEST(Tapeless, keeps_nothing) {
  EXPECT_TRUE(std::is_empty_v<Doubled::Tape>);
  EXPECT_TRUE(std::is_empty_v<Doubled::Scratch>);
  EXPECT_TRUE(std::is_empty_v<Doubled::InferenceScratch>);
}

TEST(Tapeless, passes_a_gradient_on_without_its_memory) {
  const Doubled::Input x{{1, 2}}, dy{{3, 4}};
  Doubled::Input dx{};
  Doubled::Parameters none;
  Doubled::Scratch scratch;
  Doubled::backward({}, x, {}, dy, dx, none, scratch);
  for (int i = 0; i < Doubled::Input::size; ++i) EXPECT_EQ(dx.values[i], 2 * dy.values[i]);
}

TEST(Unparameterized, computes_dx_only_where_it_is_wanted) {
  const Squared::Input x{{3, -2}}, dy{{1, 10}};
  Squared::Output inferred{}, trained{};
  Squared::Input dx{};
  Squared::InferenceScratch inference;
  Squared::Tape tape;
  Squared::Scratch scratch;
  Squared::Parameters none;
  Squared::forward({}, x, inferred, inference);
  Squared::forward({}, x, trained, tape, scratch);
  Squared::backward({}, x, tape, dy, attune::NoGradient{}, none, scratch);
  EXPECT_EQ(Squared::backwards, 0);
  Squared::backward({}, x, tape, dy, dx, none, scratch);
  EXPECT_EQ(Squared::backwards, 1);
  for (int i = 0; i < Squared::Input::size; ++i) {
    EXPECT_EQ(inferred.values[i], x.values[i] * x.values[i]);
    EXPECT_EQ(trained.values[i], x.values[i] * x.values[i]);
    EXPECT_EQ(dx.values[i], 2 * x.values[i] * dy.values[i]);
  }
}
