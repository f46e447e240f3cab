// Moments of an optimizer in less than a scalar per parameter.
//
// Such a set is one array for all tensors, in the order of visit. It has no named tensors. at<rows,
// cols>(place) returns the part of one tensor, in place of a Tensor of moments.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/kernels/ops/bfloat16_moments.hpp>
#include <attune/kernels/ops/int8_moments.hpp>

namespace ATTUNE_NAMESPACE {

/// The precision of an optimizer's moments.
enum class MomentPrecision {
  kScalar = 0,    // the parameters' type
  kBfloat16 = 1,  // the upper 16 bits of a float, rounded stochastically: half the RAM, 8 significant bits
  kInt8 = 2,      // 8 bits and a scale per 64 moments, rounded to nearest: 1.06 bytes a moment
  kInt8Stochastic = 3,  // the same, rounded stochastically
};

namespace detail {

constexpr bool is_int8(MomentPrecision precision) {
  return precision == MomentPrecision::kInt8 || precision == MomentPrecision::kInt8Stochastic;
}
constexpr bool is_random(MomentPrecision precision) {
  return precision == MomentPrecision::kBfloat16 || precision == MomentPrecision::kInt8Stochastic;
}

/// The start of a tensor's moments: counts over the tensors before it.
struct MomentPlace {
  int scalars = 0;
  int blocks = 0;   // of 64; a tensor's last block may be partial
  int factors = 0;  // rows and columns; elements of a vector

  /// Advances past a tensor.
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
// Declares a set without defining it, to query the types of its tensors.
template <class Set>
struct Declared {
  static const Set set;
};
/// The end of the moments of all tensors of a set.
template <class Set>
inline constexpr MomentPlace kEndOfMoments = [] {
  MomentPlace place;
  for_each_tensor(
      [&place]<class Leaf>(const TensorPath&, const Leaf&) { place.pass<Leaf::rows, Leaf::cols>(); },
      Declared<Set>::set);
  return place;
}();
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

/// The moments of one tensor, in place of a Tensor of moments.
template <class Pointer>
struct MomentTensor {
  Pointer moments;
  [[nodiscard]] Pointer data() const { return moments; }
};

/// 16 bits per parameter.
template <class Parameters>
struct Bfloat16Set {
  using Pointer = kernels::Bfloat16Moments;
  std::uint16_t values[sizeof(Parameters) / sizeof(float)];

  template <int, int>
  [[nodiscard]] MomentTensor<Pointer> at(const MomentPlace& place) {
    return {{values + place.scalars, static_cast<std::uint32_t>(place.scalars)}};
  }
};
/// 8 bits per parameter, and a scale per block of a tensor.
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

/// The set of moments in a precision, and the pointer to part of it.
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

/// The first of the tensors, which gives the shape.
template <class Leaf, class... Leaves>
struct ShapeOf : ShapeOf<Leaves...> {};
template <class Leaf, class... Leaves>
  requires requires { Leaf::size; }
struct ShapeOf<Leaf, Leaves...> {
  static constexpr int rows = Leaf::rows, cols = Leaf::cols;
};

/// A function of sets that calls visitor(path, tensor of each set…, tensor of each of `moments`…). These are
/// sets such as above, or sets of tensors.
template <class... Moments>
auto visit_with_moments(const auto& visitor, Moments&... moments) {
  constexpr bool kInArrays =
      (requires(MomentPlace place) { std::declval<Moments&>().template at<1, 1>(place); } && ...);
  return [&](auto&... sets) {
    if constexpr (!kInArrays) {
      for_each_tensor(visitor, sets..., moments...);
    } else {
      MomentPlace place;
      for_each_tensor(
          [&]<class... Tensors>(const TensorPath& path, Tensors&... tensors) {
            using Shape = ShapeOf<std::remove_const_t<Tensors>...>;
            [&](auto... of_tensor) {
              visitor(path, tensors..., of_tensor...);
            }(moments.template at<Shape::rows, Shape::cols>(place)...);
            place.pass<Shape::rows, Shape::cols>();
          },
          sets...);
    }
  };
}

/// The random bits for rounding: one key per step, from a seeded generator.
struct RoundingKeys {
  std::uint64_t state;

  [[nodiscard]] constexpr kernels::PositionBits next() { return {mix(state += kGamma)}; }
};
struct NoRoundingKeys {
  [[nodiscard]] static constexpr kernels::RoundToNearest next() { return {}; }
};
/// The base of moments in scalars.
struct NotRounded {
  [[no_unique_address]] NoRoundingKeys rounding;
};
template <MomentPrecision precision>
using RoundingOf = std::conditional_t<is_random(precision), RoundingKeys, NoRoundingKeys>;

/// The coefficients of a step, and the rounding of its moments.
template <class Coefficients, MomentPrecision precision>
struct CoefficientsIn : Coefficients {
  [[no_unique_address]] decltype(RoundingOf<precision>{}.next()) rounding;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
