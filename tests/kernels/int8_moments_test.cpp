#include <attune/kernels/ops/int8_moments.hpp>

#include <array>
#include <cmath>

#include <attune/core/rng.hpp>

#include "check.hpp"
#include "kernels/adam_coefficients.hpp"

namespace {

namespace kernels = attune::kernels;
using check::kAdam;

constexpr int kSize = 2 * kernels::kMomentBlock + 37, kBlocks = 3;  // the last block is short

struct Set {
  std::array<std::uint8_t, kSize> codes;
  std::array<float, kBlocks> scales;
  bool operator==(const Set&) const = default;

  kernels::Int8Moments at(int from) { return kernels::Int8Moments{codes.data(), scales.data(), 0} + from; }
};
struct State {
  std::array<float, kSize> parameters;
  Set first, second;
  bool operator==(const State&) const = default;

  explicit State(attune::Rng rng) : first{}, second{} {
    for (float& p : parameters) p = rng.uniform(-1.0f, 1.0f);
  }
  // Those from `from` on.
  template <class Rounding>
  void adam(int from, int count, const float* gradients, Rounding rounding) {
    kernels::adam_update<false, false>(count, parameters.data() + from, gradients + from, first.at(from),
                                       second.at(from), kAdam, rounding);
  }
};

std::array<float, kSize> gradients_of(attune::Rng rng) {
  std::array<float, kSize> gradients;
  for (float& g : gradients) g = rng.uniform(-1.0f, 1.0f);
  return gradients;
}

}  // namespace

TEST(Int8Moments, are_within_half_a_code_of_full_precision) {
  State state(attune::Rng{1});
  const auto gradients = gradients_of(attune::Rng{2});
  state.adam(0, kSize, gradients.data(), kernels::RoundToNearest{});
  for (int i = 0; i < kSize; ++i) {
    const auto at = static_cast<std::size_t>(i), block = at / kernels::kMomentBlock;
    const float m_scale = state.first.scales[block], v_scale = state.second.scales[block];
    const auto m_code = static_cast<std::int8_t>(state.first.codes[at]);
    EXPECT_NEAR(static_cast<float>(m_code) * m_scale, 0.1f * gradients[at], 0.501f * m_scale);
    const float root = attune::kernels::square_root(0.001f) * std::fabs(gradients[at]);
    EXPECT_NEAR(static_cast<float>(state.second.codes[at]) * v_scale, root, 1.001f * v_scale);
    EXPECT_GE(state.second.codes[at], 1);
  }
}

TEST(Int8Moments, of_a_block_without_gradients_stay_zeros) {
  State state(attune::Rng{1});
  const State before = state;
  auto gradients = gradients_of(attune::Rng{2});
  for (int i = 0; i < kernels::kMomentBlock; ++i)
    gradients[static_cast<std::size_t>(i)] = i % 2 ? 0.0f : 1e-30f;
  state.adam(0, kSize, gradients.data(), kernels::PositionBits{3});
  EXPECT_EQ(state.first.scales[0], 0.0f);
  EXPECT_EQ(state.second.scales[0], 0.0f);
  for (int i = 1; i < kernels::kMomentBlock; i += 2) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(state.parameters[at], kAdam.decay * before.parameters[at]);
  }
}

TEST(Int8Moments, are_the_same_updated_block_by_block) {
  const auto gradients = gradients_of(attune::Rng{2});
  const auto expect_same = [&](auto rounding) {
    State at_once(attune::Rng{1}), in_parts(attune::Rng{1});
    for (int step = 0; step < 3; ++step) {
      at_once.adam(0, kSize, gradients.data(), rounding);
      in_parts.adam(kernels::kMomentBlock, kSize - kernels::kMomentBlock, gradients.data(), rounding);
      in_parts.adam(0, kernels::kMomentBlock, gradients.data(), rounding);
    }
    EXPECT_TRUE(at_once == in_parts);
  };
  expect_same(kernels::RoundToNearest{});
  expect_same(kernels::PositionBits{5});
}

TEST(Int8Moments, rounded_at_random_are_right_in_the_mean) {
  constexpr int kTimes = 4000;
  const auto gradients = gradients_of(attune::Rng{2});
  std::array<float, kSize> mean{};
  float scale = 0;
  for (int time = 0; time < kTimes; ++time) {
    State state(attune::Rng{1});
    state.adam(0, kSize, gradients.data(),
               kernels::PositionBits{static_cast<std::uint64_t>(time) * 0x9E3779B97F4A7C15u});
    scale = state.first.scales[0];
    for (std::size_t i = 0; i < kernels::kMomentBlock; ++i)
      mean[i] += static_cast<float>(static_cast<std::int8_t>(state.first.codes[i])) / kTimes;
  }
  for (std::size_t i = 0; i < kernels::kMomentBlock; ++i)
    EXPECT_NEAR(mean[i] * scale, 0.1f * gradients[i], 0.05f * scale);  // six standard errors
}
