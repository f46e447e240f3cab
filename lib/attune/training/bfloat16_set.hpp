// What an optimizer with moments in 16 bits keeps beside its counters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/kernels/ops/bfloat16_moments.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// In what an optimizer keeps its moments.
enum class MomentPrecision {
  kScalar,    // as parameters are
  kBfloat16,  // the upper 16 bits of a float, rounded at random: half the RAM, and 8 significant bits
};

namespace detail {

/// 16 bits for each parameter of a set, in the order in which it is visited.
template <class Parameters>
struct Bfloat16Set {
  std::uint16_t values[sizeof(Parameters) / sizeof(float)];
};

/// Those of one tensor, where a Tensor of moments would be.
struct Bfloat16Tensor {
  kernels::Bfloat16Moments moments;
  [[nodiscard]] kernels::Bfloat16Moments data() const { return moments; }
};

/// How many scalars what stands for a tensor has; 0 where it does not say.
template <class Leaf>
inline constexpr int kSizeOf = 0;
template <class Leaf>
  requires requires { Leaf::size; }
inline constexpr int kSizeOf<Leaf> = Leaf::size;

/// visitor(path, tensor of each set…, tensor of each of `moments`…).
template <class Visitor, class... Sets, class... Moments>
void for_each_with_bfloat16(const Visitor& visitor, std::tuple<Sets&...> sets, Moments&... moments) {
  int position = 0;
  std::apply(
      [&](auto&... set) {
        for_each_tensor(
            [&](const TensorPath& path, auto&... tensors) {
              const auto at = [&](auto& all) {
                return Bfloat16Tensor{{all.values + position, static_cast<std::uint32_t>(position)}};
              };
              [&](auto... of_tensor) { visitor(path, tensors..., of_tensor...); }(at(moments)...);
              position += (std::max)({kSizeOf<std::remove_cvref_t<decltype(tensors)>>...});
            },
            set...);
      },
      sets);
}

/// Where the random bits of rounding come from: one key a step, of a generator that starts at a seed.
struct RoundingKeys {
  std::uint64_t state;

  [[nodiscard]] constexpr kernels::PositionBits next() { return {mix(state += kGamma)}; }
};
struct NoRoundingKeys {};

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
