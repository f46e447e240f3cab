// Softmax of rows, forward and backward.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/cortex_m/exponential.hpp>
#include <attune/kernels/mve/exponential.hpp>
#include <attune/kernels/ops/reduce.hpp>
#include <attune/kernels/ops/rows.hpp>
#include <attune/kernels/portable/replace_packets.hpp>
#include <attune/kernels/simd/elementary.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// The shift that is subtracted from a row before its exponentials, and the factor behind them, from the
// largest score and the sum. If every key is masked, e^(−∞ − 0) = 0, and so is the factor.
template <class Scalar>
ATTUNE_INLINE Scalar softmax_shift(const Scalar& largest) {
  constexpr auto kMinusInfinity = -std::numeric_limits<Real<Scalar>>::infinity();
  return select_less(Scalar(kMinusInfinity), largest, largest, Scalar(0));
}
template <class Scalar>
ATTUNE_INLINE Scalar softmax_inverse(const Scalar& total) {
  return select_less(total, Scalar(0.5), Scalar(0), divide(Scalar(1), total));
}

template <class Scalar>
struct ShiftedExponentials {
  Scalar shift;

  template <int count, class P>
  ATTUNE_INLINE void operator()(P* scores) const {
    ATTUNE_UNROLL for (int i = 0; i < count; ++i) scores[i] = subtract(scores[i], broadcast<P>(shift));
    exponentials<count>(scores);
  }
};

// e^(s − shift) in place.
template <int kCols, class Scalar>
ATTUNE_INLINE void shifted_exponentials(Scalar* row, Scalar shift) {
  replace_packets<kCols>(row, ShiftedExponentials<Scalar>{shift});
}
template <int kCols, class Scalar>
requires kIsScalar<Packet<Scalar>> ATTUNE_INLINE void shifted_exponentials(Scalar* row, Scalar shift) {
  const Scalar one = in_register(Scalar(1));
  const auto replace = [&](int j) ATTUNE_INLINE_LAMBDA {
    const auto bits = detail::exponential_bits(row[j] - shift, one);
    std::memcpy(row + j, &bits, sizeof bits);
  };
  int j = 0;
#if !ATTUNE_FOR_SIZE
  for (; j + 2 <= kCols; j += 2) replace(j), replace(j + 1);
#endif
  for (; j < kCols; ++j) replace(j);
}
#if ATTUNE_MVE && ATTUNE_FUSED
template <int kCols>
  requires(kCols >= 4)
ATTUNE_INLINE void shifted_exponentials(float* row, float shift) {
  detail::exponentials_in_place<kCols / 4>(row, shift);
  for (int j = kCols / 4 * 4; j < kCols; ++j) row[j] = exponential(row[j] - shift);
}
#elif ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
template <int kCols>
  requires(kCols >= 8)
ATTUNE_INLINE void shifted_exponentials(float* row, float shift) {
  exponentials_of_pairs(kCols / 2, row, shift);
  if constexpr (kCols % 2 != 0) row[kCols - 1] = exponential(row[kCols - 1] - shift);
}
#endif

// The same, and their sum. With packets, the chain of additions overlaps the exponentials.
template <int kCols, class Scalar>
ATTUNE_INLINE Scalar sum_of_shifted_exponentials(Scalar* row, Scalar shift) {
  if constexpr (kLanes<Packet<Scalar>> == 1 || ATTUNE_MVE) {
    shifted_exponentials<kCols>(row, shift);
    return sum_of<kCols>(row);
  } else {
    PartialSums<Scalar, kCols> sums;
    replace_packets<kCols>(row, ShiftedExponentials<Scalar>{shift},
                           [&](int packet, const auto& powers)
                               ATTUNE_INLINE_LAMBDA { sums.add_terms(packet, powers); });
    return sums.total();
  }
}

// The exponentials of the first `end` scalars, kBlock at a time; the others are −∞.
template <int kCols, int kBlock, class Scalar>
ATTUNE_INLINE void shifted_exponentials_of_prefix(int end, Scalar* row, Scalar shift) {
  constexpr int kRest = kCols % kBlock;
  int first = 0;
  if constexpr (kIsScalar<Packet<Scalar>>) {  // one loop takes less flash
    const int size = smaller((end + kBlock - 1) / kBlock * kBlock, kCols);
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
    constexpr bool kPairs = std::is_same_v<Scalar, float>;
    if constexpr (kPairs) {
      first = size & -2;
      exponentials_of_pairs(first / 2, row, shift);
    }
#else
    constexpr bool kPairs = false;
#endif
    if constexpr (!kPairs || kCols % 2 != 0) {
      const Scalar one = in_register(Scalar(1));
      for (; first < size; ++first) {
        const auto bits = exponential_bits(row[first] - shift, one);
        std::memcpy(row + first, &bits, sizeof bits);
      }
    }
  } else {
    for (; first + kBlock <= kCols && first < end; first += kBlock) {
      shifted_exponentials<kBlock>(row + first, shift);
    }
    if constexpr (kRest > 0) {
      if (first == kCols - kRest && first < end) {
        shifted_exponentials<kRest>(row + first, shift);
        first = kCols;
      }
    }
  }
  for (; first < kCols; ++first) row[first] = Scalar(0);
}

}  // namespace detail

/// Scalars of a row that are computed or skipped together. It differs by target, so it never cuts the terms
/// of a sum in integers (int8_products.hpp).
inline constexpr int kKeyBlock = kIsScalar<Packet<float>> ? 16 : 32;
/// Stands for an end: no scores are known to be −∞.
struct NoEnd {};

/// Rows that softmax_rows() takes in one call. With packets it takes several: reducing a row is a chain of
/// dependent instructions, and other rows fill the gaps.
template <class Scalar>
inline constexpr int kSoftmaxRows = kLanes<Packet<Scalar>> > 4 ? 4 : 1;

/// Two scalars of each row: the subtracted shift, and one over the sum. softmax_rows() stores them, or takes
/// those that an earlier call has stored for the same scores. Known at run time: for size, so that the code
/// exists once.
template <class Scalar>
struct RowValues {
  Scalar* values;  // nullptr: nobody asks for them
  bool given;
};
inline constexpr bool kRowValuesAtRunTime = ATTUNE_FOR_SIZE && !ATTUNE_MVE;

namespace detail {

template <class Stored>
constexpr auto given(Stored) {
  return std::is_const<std::remove_pointer_t<Stored>>{};
}
template <class Scalar>
constexpr bool given(RowValues<Scalar> kept) {
  return kept.given;
}
template <class Scalar>
constexpr Scalar given_value(std::nullptr_t, int) {
  return Scalar(0);
}
template <class Scalar>
constexpr Scalar given_value(const Scalar* kept, int i) {
  return kept[i];
}
template <class Scalar>
constexpr Scalar given_value(RowValues<Scalar> kept, int i) {
  return kept.values[i];
}
template <class Scalar>
ATTUNE_INLINE void store_values(std::nullptr_t, int, Scalar, Scalar) {}
template <class Scalar>
ATTUNE_INLINE void store_values(const Scalar*, int, Scalar, Scalar) {}
template <class Scalar>
ATTUNE_INLINE void store_values(Scalar* kept, int row, Scalar shift, Scalar inverse) {
  kept[2 * row] = shift, kept[2 * row + 1] = inverse;
}
template <class Scalar>
ATTUNE_INLINE void store_values(RowValues<Scalar> kept, int row, Scalar shift, Scalar inverse) {
  if (!kept.given && kept.values != nullptr) store_values(kept.values, row, shift, inverse);
}

}  // namespace detail

/// Softmax of kRows rows, in place: p_j = e^(s_j − max s) / Σ e^(s − max s). In float, each is accurate to 4
/// + |s_j − max s| ulp, because e^x multiplies the rounding error of the difference. A row of only −∞ becomes
/// zeros; a NaN anywhere makes its whole row NaN.
///
/// `kept` has the values of the rows (RowValues). A Scalar* receives them. A const Scalar* supplies them, and
/// gives the same bits. It may be nullptr. From `end` on, an int, all scores are −∞.
template <class Scalar, int kRows, int kCols, class Stored = std::nullptr_t, class End = NoEnd>
ATTUNE_INLINE void softmax_rows(Scalar* rows, [[maybe_unused]] Stored kept = {},
                                [[maybe_unused]] End end = {}) {
  const auto given = detail::given(kept);
#if ATTUNE_MVE && ATTUNE_FUSED
  if constexpr (std::is_same_v<Scalar, float> && kCols == 16 && std::is_null_pointer_v<Stored> &&
                std::is_same_v<End, NoEnd>) {
    for (int i = 0; i < kRows; ++i) {
      const float total = detail::sixteen_exponentials(rows + i * kCols);
      detail::scale_sixteen(rows + i * kCols, total == 0 ? 0.0f : 1 / total);
    }
    return;
  }
#endif
  Array<Scalar, kRows> shift, inverse;
  for (int i = 0; i < kRows; ++i) {
    shift[i] = given ? detail::given_value<Scalar>(kept, 2 * i)
                     : detail::softmax_shift(largest_of<kCols>(rows + i * kCols));
  }
  for (int i = 0; i < kRows; ++i) {
    Scalar* row = rows + i * kCols;
    Scalar total = 0;
    if constexpr (!std::is_same_v<End, NoEnd>) {
      detail::shifted_exponentials_of_prefix<kCols, kKeyBlock>(end, row, shift[i]);
      if (!given) total = sum_of<kCols>(row);
    } else if (given) {
      detail::shifted_exponentials<kCols>(row, shift[i]);
    } else {
      total = detail::sum_of_shifted_exponentials<kCols>(row, shift[i]);
    }
    inverse[i] = given ? detail::given_value<Scalar>(kept, 2 * i + 1) : detail::softmax_inverse(total);
  }
  for (int i = 0; i < kRows; ++i) detail::store_values(kept, i, shift[i], inverse[i]);
  for (int i = 0; i < kRows; ++i) detail::scale_row<kCols>(rows + i * kCols, inverse[i]);
}

/// One row of softmax backward: ds = p ∘ (dp − ⟨p, dp⟩) · scale. `ds` may be `p` or `dp`.
template <class Scalar, int kCols>
ATTUNE_INLINE void softmax_row_backward(const Scalar* p, const Scalar* dp, Scalar* ds, Scalar scale) {
  const Scalar dot = dot_of<kCols>(p, dp);
  int first = 0;
#if ATTUNE_CORTEX_M_FPU && !ATTUNE_FOR_SIZE
  constexpr int kFours = kCols & -4;
  if constexpr (std::is_same_v<Scalar, float> && kFours > 0) {
    detail::multiply_shifted(kFours, p, dp, ds, dot, scale);
    first = kFours;
  }
#endif
  for_each_packet<Scalar>(
      kCols,
      [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        const P centered = subtract(load<P>(dp + j), broadcast<P>(dot));
        store(ds + j, multiply(multiply(load<P>(p + j), centered), broadcast<P>(scale)));
      },
      first);
}

}  // namespace ATTUNE_NAMESPACE::kernels
