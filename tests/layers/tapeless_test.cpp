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
  using attune::detail::Tapeless<Doubled>::forward;
  template <attune::AnyContext Call = attune::Context<>>
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      const Call& context = {}) {
    context.stage([&] {
      for (int i = 0; i < Output::size; ++i) y.data[i] = 2 * x.data[i];
    });
  }
};

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
