// Scores of a head from its queries and keys, before masks.
//
//   S = scale · Q·Kᵀ
//   S = cap · tanh(scale · Q·Kᵀ / cap)      softcap (Gemma 2, 2024); between ±cap
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/softcap.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE {

/// A scale with a cap: scaled scores s become softcap · tanh(s / softcap). softcap must be positive.
template <class Scalar>
struct CappedScale {
  Scalar scale;  // factor of the scores
  Scalar softcap;
};
template <class Scalar>
CappedScale(Scalar, Scalar) -> CappedScale<Scalar>;

namespace detail {

// Uses a context's Products. `query` and `key` are blocks of rows, S[rows, keys]. In backward, `key` has all
// rows, and S is dense.
template <class Scalar>
struct ScaledScores {
  // Work per score besides the product, in multiply-accumulates (execution/slices.hpp).
  static constexpr int kWork = 0;
  template <int kDk>
  static constexpr int kWorkOfBackward = 0;
  Scalar scale;

  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void forward(const Query& query, const Key& key, const Scores& s) const {
    Products::gemm(query, key.transpose(), s, kernels::Scale<Scalar>{scale});
  }
  // Overwrites dS with the gradient of scale · Q·Kᵀ. `room` has the size of dS.
  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE static void backward(const Query&, const Key&, const Scores&, const Scores&) {}
};

template <class Scalar>
struct CappedScores {
  static constexpr int kWork = 30;
  template <int kDk>
  static constexpr int kWorkOfBackward = kDk + kWork;
  Scalar scale;
  Scalar cap;

  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void forward(const Query& query, const Key& key, const Scores& s) const {
    Products::gemm(query, key.transpose(), s, kernels::Scale<Scalar>{scale});
    if constexpr (Scores::kDense) {
      kernels::softcap(Scores::rows * Scores::cols, s.data, cap);
    } else {
      for (int i = 0; i < Scores::rows; ++i)
        kernels::softcap(Scores::cols, s.data + i * Scores::row_stride, cap);
    }
  }
  // Recomputes the scores: a tape would need as much memory for them as for weights.
  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void backward(const Query& query, const Key& key, const Scores& d_scores,
                              const Scores& room) const {
    Products::gemm(query, key.transpose(), room, kernels::Scale<Scalar>{scale});
    kernels::softcap_backward(Scores::rows * Scores::cols, static_cast<const Scalar*>(room.data),
                              d_scores.data, cap);
  }
};

template <class Scalar>
ATTUNE_INLINE ScaledScores<Scalar> scores_of(Scalar scale) {
  return {scale};
}
template <class Scalar>
ATTUNE_INLINE CappedScores<Scalar> scores_of(const CappedScale<Scalar>& scale) {
  return {scale.scale, scale.softcap};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
