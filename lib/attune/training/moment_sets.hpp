// Moments of an optimizer in less than a scalar for each parameter.
//
// Such a set is one array for all tensors, in the order in which they are visited. It has no tensors by name;
// at<rows, cols>(place) is the part of one tensor, where a Tensor of moments would be.
#pragma once

#include <cstdint>
#include <tuple>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/kernels/ops/bfloat16_moments.hpp>
#include <attune/kernels/ops/int8_moments.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// In what an optimizer keeps its moments.
enum class MomentPrecision {
  kScalar,          // as parameters are
  kBfloat16,        // the upper 16 bits of a float, rounded at random: half the RAM, and 8 significant bits
  kInt8,            // 8 bits and a scale for each 64, rounded to nearest: 1.06 bytes a moment
  kInt8Stochastic,  // the same, rounded at random
};

namespace detail {

constexpr bool is_int8(MomentPrecision precision) {
  return precision == MomentPrecision::kInt8 || precision == MomentPrecision::kInt8Stochastic;
}
constexpr bool is_random(MomentPrecision precision) {
  return precision == MomentPrecision::kBfloat16 || precision == MomentPrecision::kInt8Stochastic;
}

/// Where the moments of a tensor begin: what the tensors before it have.
struct MomentPlace {
  int scalars = 0;
  int blocks = 0;   // of 64, the last of a tensor in part
  int factors = 0;  // rows and columns; of a vector its elements

  /// Passes a tensor.
  template <int rows, int cols>
  constexpr void pass() {
    scalars += rows * cols;
    blocks += (rows * cols + kernels::kMomentBlock - 1) / kernels::kMomentBlock;
    factors += rows > 1 && cols > 1 ? rows + cols : rows * cols;
  }
};

#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wundefined-var-template"
#pragma clang diagnostic ignored "-Wundefined-internal"
#endif
// A set that is nowhere: what is asked for is the type of its tensors.
template <class Set>
struct Nowhere {
  static const Set set;
};
/// Behind all tensors of a set.
template <class Set>
inline constexpr MomentPlace kEndOfMoments = [] {
  MomentPlace place;
  for_each_tensor(
      [&place]<class Leaf>(const TensorPath&, const Leaf&) { place.pass<Leaf::rows, Leaf::cols>(); },
      Nowhere<Set>::set);
  return place;
}();
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// The moments of one tensor, where a Tensor of moments would be.
template <class Pointer>
struct MomentTensor {
  Pointer moments;
  [[nodiscard]] Pointer data() const { return moments; }
};

/// 16 bits for each parameter.
template <class Parameters>
struct Bfloat16Set {
  using Pointer = kernels::Bfloat16Moments;
  std::uint16_t values[sizeof(Parameters) / sizeof(float)];

  template <int, int>
  [[nodiscard]] MomentTensor<Pointer> at(const MomentPlace& place) {
    return {{values + place.scalars, static_cast<std::uint32_t>(place.scalars)}};
  }
};
/// 8 bits for each parameter, and a scale for each block of a tensor.
template <class Parameters>
struct Int8Set {
  using Pointer = kernels::Int8Moments;
  float scales[kEndOfMoments<Parameters>.blocks];
  std::uint8_t codes[kEndOfMoments<Parameters>.scalars];

  template <int, int>
  [[nodiscard]] MomentTensor<Pointer> at(const MomentPlace& place) {
    return {{codes + place.scalars, scales + place.blocks, static_cast<std::uint32_t>(place.scalars)}};
  }
};

/// The moments in a precision, and what points to some of them.
template <class Parameters, class Scalar, MomentPrecision precision>
struct MomentsIn {
  using Set = std::conditional_t<is_int8(precision), Int8Set<Parameters>, Bfloat16Set<Parameters>>;
};
template <class Parameters, class Scalar>
struct MomentsIn<Parameters, Scalar, MomentPrecision::kScalar> {
  using Set = Parameters;
};
template <class Scalar, MomentPrecision precision>
using MomentPointerIn = std::conditional_t<
    is_int8(precision), kernels::Int8Moments,
    std::conditional_t<precision == MomentPrecision::kScalar, Scalar*, kernels::Bfloat16Moments>>;

/// What stands for a tensor and says its shape: the first of them.
template <class Leaf, class... Leaves>
struct ShapeOf : ShapeOf<Leaves...> {};
template <class Leaf, class... Leaves>
  requires requires { Leaf::size; }
struct ShapeOf<Leaf, Leaves...> {
  static constexpr int rows = Leaf::rows, cols = Leaf::cols;
};

/// visitor(path, tensor of each set…, tensor of each of `moments`…).
template <class Visitor, class... Sets, class... Moments>
void for_each_with_moment_sets(const Visitor& visitor, std::tuple<Sets&...> sets, Moments&... moments) {
  MomentPlace place;
  std::apply(
      [&](auto&... set) {
        for_each_tensor(
            [&]<class... Tensors>(const TensorPath& path, Tensors&... tensors) {
              using Shape = ShapeOf<std::remove_const_t<Tensors>...>;
              [&](auto... of_tensor) {
                visitor(path, tensors..., of_tensor...);
              }(moments.template at<Shape::rows, Shape::cols>(place)...);
              place.pass<Shape::rows, Shape::cols>();
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
struct NoRoundingKeys {
  [[nodiscard]] static constexpr kernels::RoundToNearest next() { return {}; }
};
template <MomentPrecision precision>
using RoundingOf = std::conditional_t<is_random(precision), RoundingKeys, NoRoundingKeys>;

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
