#include <attune/execution/layer_calls.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 4;

// y = x, of a layer that knows neither masks nor slices.
struct Copy {
  static constexpr Abilities kAbilities{.mixes_tokens = false};
  using Scalar = float;
  using Input = Tensor<Scalar, kTokens, 2>;
  using Output = Input;
  using Parameters = NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&) {
    for (int i = 0; i < Input::size; ++i) y.data[i] = x.data[i];
  }
  static void forward(const Parameters& p, ConstView<Input> x, View<Output> y, Tape&, Scratch&) {
    InferenceScratch none;
    forward(p, x, y, none);
  }
  static void backward(const Parameters& p, ConstView<Input>, Tape&, ConstView<Output> dy, auto&& dx,
                       Parameters&, Scratch&) {
    if constexpr (kWanted<decltype(dx)>) {
      InferenceScratch none;
      forward(p, dy, dx, none);
    }
  }
};
// The same, and it asks its mask which tokens are none.
struct CopyOfTokens : Copy {
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding, .takes_context = true};
  using Copy::forward;
  template <AnyContext Call>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context) {
    for (int i = 0; i < kTokens; ++i) {
      for (int j = 0; j < 2; ++j) y(i, j) = detail::keeps_key<kTokens>(context.mask(), i) ? x(i, j) : -1.0f;
    }
  }
};
// The first three tokens.
struct First3 {
  template <int kv_len, class Scalar>
  static constexpr void hide(int, int, Scalar*) {}
  template <int kv_len, class Scalar>
  static constexpr void bias(int, int, Scalar*) {}
  template <int kv_len>
  static constexpr bool keeps_key(int key) {
    return key < 3;
  }
};

const Copy::Input kX{{1, 2, 3, 4, 5, 6, 7, 8}};

}  // namespace

TEST(LayerCalls, pass_a_mask_to_who_takes_one) {
  Copy::Output plain, masked;
  Copy::InferenceScratch scratch;
  detail::forward_in<Copy>(Context(First3{}), NoParameters{}, kX, plain, scratch);
  detail::forward_in<CopyOfTokens>(Context(First3{}), NoParameters{}, kX, masked, scratch);
  EXPECT_EQ(plain(3, 1), 8.0f);
  EXPECT_EQ(masked(2, 1), 6.0f);
  EXPECT_EQ(masked(3, 1), -1.0f);
}

TEST(LayerCalls, of_a_layer_without_a_context_are_one_stage) {
  Copy::Output y{};
  Copy::InferenceScratch scratch;
  SliceAddress address;
  detail::SliceWalk walk(address, 1);
  EXPECT_EQ(
      detail::forward_status<Copy>(Context(NoMask{}, OneSlice<1>(walk)), NoParameters{}, kX, y, scratch),
      Status::kOk);
  EXPECT_EQ(y(3, 1), 8.0f);
  EXPECT_TRUE(walk.complete());
  y = {};
  detail::SliceWalk next(address, 1);
  detail::forward_in<Copy>(Context(NoMask{}, OneSlice<1>(next)), NoParameters{}, kX, y, scratch);
  EXPECT_EQ(y(0, 0), 0.0f);  // nothing is left
}
