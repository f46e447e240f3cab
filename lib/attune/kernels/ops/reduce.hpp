// Sums in one order on every target: 16 interleaved partial sums, then halves added pairwise,
//   s_l = x_l + x_{l+16} + x_{l+32} + …,   ((s_0+s_8) + (s_4+s_12)) + … .
// A vector unit of 4, 8 or 16 lanes computes this order directly; a scalar unit computes it lane by lane.
#pragma once

#include <concepts>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/registers.hpp>
#include <attune/kernels/portable/partial_sums.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// Σ of the terms of one lane: kLane, kLane + 16, ….
template <int kSize, class Scalar, class Term>
ATTUNE_INLINE Scalar lane_sum(int lane, const Term& term) {
  Scalar sum = term.template operator()<Scalar>(lane);
  for (int i = lane + kSumLanes; i < kSize; i += kSumLanes)
    sum = add(sum, term.template operator()<Scalar>(i));
  return sum;
}

// The longest sum that is unrolled on a scalar unit, and the lanes of others that are summed together.
#if ATTUNE_FOR_SIZE
inline constexpr int kUnrolledSum = kSumLanes - 1, kLanesTogether = 1;
#else
inline constexpr int kUnrolledSum = 4 * kSumLanes, kLanesTogether = 4;
#endif

// Short sums on a scalar unit, unrolled: lane kLane, and the lanes joined with it, kStride apart.
template <int kSize, int kLane, int kStride, class Scalar, class Term>
ATTUNE_INLINE Scalar tree_sum(const Term& term) {
  static_assert(kLane < kSize);
  if constexpr (kStride == kSumLanes) {
    return lane_sum<kSize, Scalar>(kLane, term);
  } else {
    const Scalar left = tree_sum<kSize, kLane, kStride * 2, Scalar>(term);
    if constexpr (kLane + kStride < kSize) {
      return add(left, tree_sum<kSize, kLane + kStride, kStride * 2, Scalar>(term));
    } else {
      return left;
    }
  }
}

// Lanes joined half by half.
template <class Scalar>
[[gnu::noinline]] Scalar sum_of_lanes(Scalar* lanes) {
  for (int half = kSumLanes / 2; half >= 1; half /= 2) {
    for (int l = 0; l < half; ++l) lanes[l] = add(lanes[l], lanes[l + half]);
  }
  return lanes[0];
}

}  // namespace detail

/// Σ term(i), i in [0, kSize), in the library's order. `term.template operator()<P>(i)` gives the terms i …
/// i+lanes−1.
template <class Scalar, int kSize, class Term>
ATTUNE_INLINE Scalar sum(const Term& term) {
  using P = typename detail::PartialSums<Scalar, kSize>::P;
  if constexpr (kLanes<P> == 1 && kSize <= detail::kUnrolledSum) {
    return detail::tree_sum<kSize, 0, 1, Scalar>(term);
  } else if constexpr (kLanes<P> == 1) {
    Scalar lanes[kSumLanes];
    for (int l = 0; l < kSumLanes; ++l) lanes[l] = detail::lane_sum<kSize, Scalar>(l, term);
    return detail::sum_of_lanes(lanes);
  } else {
    constexpr int kStep = detail::kUsedLanes<kSize>;
    detail::PartialSums<Scalar, kSize> sums;
    for (int i = 0; i + kStep <= kSize; i += kStep) sums.add_lanes(i, term);
    if constexpr (kSize % kStep != 0) sums.add_rest(term);
    return sums.total();
  }
}

/// The type of a size in kernels that share one code for all sizes on targets without packets. There it is a
/// run-time number. Elsewhere it stays the same: a std::integral_constant if the compiler knows the size.
template <class Scalar, class Size>
constexpr auto size_for_rows(Size size) {
  return static_cast<std::conditional_t<kIsScalar<Packet<Scalar>>, int, Size>>(size);
}

/// Σ term(i), i in [0, size), in the same order.
template <class Scalar, int kSize, class Term>
ATTUNE_INLINE Scalar sum(std::integral_constant<int, kSize>, const Term& term) {
  return sum<Scalar, kSize>(term);
}
template <class Scalar, class Term>
ATTUNE_INLINE Scalar sum(int size, const Term& term) {
  constexpr int kInRegisters = detail::kLanesTogether;
  Scalar lanes[kSumLanes];
  const int whole = size & -kInRegisters;
  for (int first = 0; first < kSumLanes; first += kInRegisters) {
    Scalar some[kInRegisters];
    ATTUNE_UNROLL for (Scalar& lane : some) lane = Scalar(-0.0);  // changes no sum
    for (int i = first; i < whole; i += kSumLanes) {
      ATTUNE_UNROLL for (int l = 0; l < kInRegisters; ++l) {
        some[l] = add(some[l], term.template operator()<Scalar>(i + l));
      }
    }
    ATTUNE_UNROLL for (int l = 0; l < kInRegisters; ++l) lanes[first + l] = some[l];
  }
  for (int i = whole; i < size; ++i) {
    Scalar& lane = lanes[i % kSumLanes];
    lane = add(lane, term.template operator()<Scalar>(i));
  }
  return detail::sum_of_lanes(lanes);
}

/// Σ of kSize contiguous scalars, in the same order.
template <int kSize, class Scalar>
ATTUNE_INLINE Scalar sum_of(const Scalar* x) {
  return sum<Scalar, kSize>([x]<class P>(int i) ATTUNE_INLINE_LAMBDA { return load<P>(x + i); });
}

/// Σ xᵢ·yᵢ of kSize scalars, in the same order.
template <int kSize, class Scalar>
ATTUNE_INLINE Scalar dot_of(const Scalar* x, const Scalar* y) {
  return sum<Scalar, kSize>([x, y]<class P>(int i)
                                ATTUNE_INLINE_LAMBDA { return multiply(load<P>(x + i), load<P>(y + i)); });
}

/// The largest of |…| or of the terms themselves: exact, so its order does not matter.
template <class Scalar, int kSize, class Term>
ATTUNE_INLINE Scalar largest(const Term& term) {
  using P = Packet<Scalar, kSize>;
  constexpr int kLast = kSize - kLanes<P>;
  // A comparison takes as long as several loads.
  constexpr int kChains = kLanes<P> == 1 ? 1 : smaller(kSize / kLanes<P>, 4), kStep = kChains * kLanes<P>;
  const auto join = [](const auto& left, const auto& right)
                        ATTUNE_INLINE_LAMBDA { return maximum(left, right); };
  const auto at = [&](int i) ATTUNE_INLINE_LAMBDA { return term.template operator()<P>(i); };
  Array<P, kChains> best;
  ATTUNE_UNROLL for (int chain = 0; chain < kChains; ++chain) best[chain] = at(chain * kLanes<P>);
  int i = kStep;
  for (; i + kStep <= kSize; i += kStep) {
    ATTUNE_UNROLL for (int chain = 0; chain < kChains; ++chain) {
      best[chain] = maximum(best[chain], at(i + chain * kLanes<P>));
    }
  }
  for (; i < kSize; i += kLanes<P>) best[0] = maximum(best[0], at(smaller(i, kLast)));  // some of them twice
  ATTUNE_UNROLL for (int chain = 1; chain < kChains; ++chain) best[0] = maximum(best[0], best[chain]);
  return fold(best[0], join);
}

/// The largest of kSize contiguous scalars.
template <int kSize, class Scalar>
ATTUNE_INLINE Scalar largest_of(const Scalar* x) {
  return largest<Scalar, kSize>([x]<class P>(int i) ATTUNE_INLINE_LAMBDA { return load<P>(x + i); });
}

#if ATTUNE_CORTEX_M_FPU && ATTUNE_FOR_SIZE

template <int kSize, std::same_as<float> Scalar>
  requires(kSize == kSumLanes)
ATTUNE_INLINE Scalar sum_of(const Scalar* x) { return detail::fold_of_many(x); }

#elif ATTUNE_CORTEX_M_FPU

template <int kSize, std::same_as<float> Scalar>
  requires(kSize >= kSumLanes)
ATTUNE_INLINE Scalar sum_of(const Scalar* x) {
  constexpr int kRest = kSize % kSumLanes;
  detail::ManyRegisters lanes = detail::load_many(x);
  for (int i = kSumLanes; i < kSize - kRest; i += kSumLanes) {
    ATTUNE_UNROLL for (int l = 0; l < kSumLanes; ++l) lanes.lane[l] = add(lanes.lane[l], x[i + l]);
  }
  ATTUNE_UNROLL for (int l = 0; l < kRest; ++l) { lanes.lane[l] = add(lanes.lane[l], x[kSize - kRest + l]); }
  ATTUNE_UNROLL for (int half = kSumLanes / 2; half >= 1; half /= 2) {
    ATTUNE_UNROLL for (int l = 0; l < half; ++l) lanes.lane[l] = add(lanes.lane[l], lanes.lane[l + half]);
  }
  return lanes.lane[0];
}
template <int kSize, std::same_as<float> Scalar>
  requires(kSize > detail::kManyRegisters)
ATTUNE_INLINE Scalar dot_of(const Scalar* x, const Scalar* y) { return detail::dot_of_many(kSize, x, y); }
template <int kSize, std::same_as<float> Scalar>
  requires(kSize == detail::kManyRegisters)
ATTUNE_INLINE Scalar dot_of(const Scalar* x, const Scalar* y) { return detail::dot_of_many(x, y); }
template <int kSize, std::same_as<float> Scalar>
  requires(kSize >= detail::kManyRegisters)
ATTUNE_INLINE Scalar largest_of(const Scalar* x) { return detail::largest_of_many(x, kSize); }

#elif ATTUNE_MVE

template <int kSize, std::same_as<float> Scalar>
  requires(kSize == kSumLanes)
ATTUNE_INLINE Scalar sum_of(const Scalar* x) {
  const float32x4_t low = add(load<float32x4_t>(x), load<float32x4_t>(x + 8));
  return sum_of_lanes(add(low, add(load<float32x4_t>(x + 4), load<float32x4_t>(x + 12))));
}
template <int kSize, std::same_as<float> Scalar>
  requires(kSize % 4 == 0)
ATTUNE_INLINE Scalar largest_of(const Scalar* x) {
  float32x4_t best = load<float32x4_t>(x);
  for (int i = 4; i < kSize; i += 4) best = maximum(best, load<float32x4_t>(x + i));
  return largest_lane(best);
}

#endif

}  // namespace ATTUNE_NAMESPACE::kernels
