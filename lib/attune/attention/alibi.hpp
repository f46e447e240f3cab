// Attention with linear biases (Press et al., "Train Short, Test Long: Attention with Linear Biases Enables
// Input Length Extrapolation", 2022): a mask that hides nothing and makes distant keys count less.
//
//   s(h, i, j) − m_h · |p_i − j|,      m_h = 2^(−8(h + 1)/H)
//
// If H is no power of two, the slopes follow the paper's own code: all slopes of the next lower power of two,
// then every other slope of the next higher one. With a causal mask only the keys before the query remain, as
// in the paper.
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/core/sine_table.hpp>

namespace ATTUNE_NAMESPACE {

/// m_h of one head out of `num_heads`.
[[nodiscard]] constexpr double alibi_slope(int head, int num_heads) {
  int below = 1;  // the largest power of two up to num_heads
  while (2 * below <= num_heads) below *= 2;
  const int step = head < below ? 2 * (head + 1) : 2 * (head - below) + 1;
  return detail::inverse_power(256, static_cast<double>(step) / (2 * below));
}

/// Query i is at position i + offset, key j at position j. Made for a layer with kHeads query heads. Composes
/// with other masks through `&&` (mask.hpp).
template <int kHeads>
struct AlibiBias {
  static_assert(detail::Holds<(kHeads > 0)>,
                "attune::AlibiBias: the number of heads must be positive, and the layer's");
  int offset = 0;

  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.num_heads == kHeads)>,
                  "attune::AlibiBias: the bias and the layer have different numbers of heads");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar*) const {}
  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    using Real = kernels::Real<Scalar>;
    const Real slope = kSlopes<Real>.of[head];
    for (int key = 0; key < kv_len; ++key) {
      const int distance = query + offset - key;
      const Real bias = slope * static_cast<Real>(distance < 0 ? distance : -distance);
      row[key] = kernels::add(row[key], Scalar(bias));
    }
  }

 private:
  template <class Real>
  struct Slopes {
    Real of[std::size_t{kHeads}];
  };
  template <class Real>
  static constexpr Slopes<Real> kSlopes = [] {
    Slopes<Real> slopes{};
    for (int head = 0; head < kHeads; ++head) slopes.of[head] = static_cast<Real>(alibi_slope(head, kHeads));
    return slopes;
  }();
};

}  // namespace ATTUNE_NAMESPACE
