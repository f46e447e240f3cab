// Softmax of the first scalars of rows, as many as given at run time. It has the same bits as softmax of
// whole rows (kernels/ops/softmax.hpp), in the time of the used scalars.
//
// A whole row adds zeros after them, which change no sum. So the lanes are the same, only shorter.
#pragma once

#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/softmax.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

/// The first `end` of kCols scalars, rounded up to whole lanes.
template <int kCols>
constexpr int whole_lanes(int end) {
  static_assert(kCols > kSumLanes / 2, "shorter sums have other lanes");
  return smaller((end + kSumLanes - 1) / kSumLanes * kSumLanes, kCols);
}
/// Calls body<count>(first) for the first `size` scalars, whole lanes of kCols.
template <int kCols, class Body>
ATTUNE_INLINE void for_whole_lanes(int size, const Body& body) {
  constexpr int kRest = kCols % kSumLanes;
  for (int first = 0; first + kSumLanes <= size; first += kSumLanes) {
    body.template operator()<kSumLanes>(first);
  }
  if constexpr (kRest > 0) {
    if (size == kCols) body.template operator()<kRest>(kCols - kRest);
  }
}
/// Σ term(i), i in [0, size), whole lanes of kCols, in the order of ops/reduce.hpp. The zeros after them turn
/// a sum of only −0 into +0.
template <class Scalar, int kCols, class Term>
ATTUNE_INLINE Scalar sum_of_prefix(int size, const Term& term) {
  using P = Packet<Scalar, kSumLanes>;
  const Scalar behind = size == kCols ? Scalar(-0.0) : Scalar(0);
  if constexpr (kLanes<P> == 1) {
    return add(sum<Scalar>(size, term), behind);
  } else {
    if constexpr (kCols % kSumLanes != 0) {
      if (size == kCols) return sum<Scalar, kCols>(term);
    }
    PartialSums<Scalar, kSumLanes> sums(behind);
    for (int i = 0; i < size; i += kSumLanes) sums.add_lanes(i, term);
    return sums.total();
  }
}
template <int kCols, class Scalar>
ATTUNE_INLINE Scalar largest_of_prefix(int size, const Scalar* row) {
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
  if constexpr (std::is_same_v<Scalar, float>) return largest_of_many(row, size);
#endif
  Scalar best = row[0];
  for_whole_lanes<kCols>(size, [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
    best = maximum(best, largest_of<count>(row + first));
  });
  return best;
}

}  // namespace detail

/// Whether rows of kCols are long enough for this to save time.
template <int kCols>
inline constexpr bool kPrefixPays = kCols > 3 * kSumLanes;

/// The number of used scalars of a row.
struct Before {
  int end;
};

/// softmax_rows() for rows with scores of −∞ from the end on; these scores become zeros.
template <class Scalar, int kRows, int kCols, class Stored = std::nullptr_t>
ATTUNE_INLINE void softmax_rows(Scalar* rows, Stored kept, Before before) {
  constexpr auto kMinusInfinity = -std::numeric_limits<Real<Scalar>>::infinity();
  const int size = detail::whole_lanes<kCols>(before.end);
  for (int i = 0; i < kRows; ++i) {
    Scalar* row = rows + i * kCols;
    const auto given = detail::given(kept);
    Scalar shift, inverse;
    if (given) {
      shift = detail::given_value<Scalar>(kept, 2 * i);
    } else {
      shift = detail::softmax_shift(size == 0 ? Scalar(kMinusInfinity)
                                              : detail::largest_of_prefix<kCols>(size, row));
    }
    detail::shifted_exponentials_of_prefix<kCols, kKeyBlock>(before.end, row, shift);
    if (given) {
      inverse = detail::given_value<Scalar>(kept, 2 * i + 1);
    } else {
      const Scalar total = detail::sum_of_prefix<Scalar, kCols>(
          size, [row]<class P>(int j) ATTUNE_INLINE_LAMBDA { return load<P>(row + j); });
      inverse = detail::softmax_inverse(total);
    }
    detail::store_values(kept, i, shift, inverse);
    detail::for_whole_lanes<kCols>(size, [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
      detail::scale_row<count>(row + first, inverse);
    });
  }
}

/// softmax_row_backward() for a row with dp zero from the end on, rounded up to whole lanes.
template <class Scalar, int kCols>
ATTUNE_INLINE void softmax_row_backward(const Scalar* p, const Scalar* dp, Scalar* ds, Scalar scale,
                                        Before before) {
  const int size = detail::whole_lanes<kCols>(before.end);
  const Scalar dot = detail::sum_of_prefix<Scalar, kCols>(
      size, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA { return multiply(load<P>(p + j), load<P>(dp + j)); });
  for_each_packet<Scalar>(size, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
    const P centered = subtract(load<P>(dp + j), broadcast<P>(dot));
    store(ds + j, multiply(multiply(load<P>(p + j), centered), broadcast<P>(scale)));
  });
}

}  // namespace ATTUNE_NAMESPACE::kernels
