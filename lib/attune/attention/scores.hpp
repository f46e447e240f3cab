// How the scores of a head come from its queries and keys, before masks.
//
//   S = scale · Q·Kᵀ
//   S = cap · tanh(scale · Q·Kᵀ / cap)      softcap (Gemma 2, 2024); between ±cap
#pragma once

#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/softcap.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// In the place of a scale: scaled scores s become softcap · tanh(s / softcap). softcap must be positive.
template <class Scalar>
struct CappedScale {
  Scalar scale;  // what scores are multiplied by
  Scalar softcap;
};
template <class Scalar>
CappedScale(Scalar, Scalar) -> CappedScale<Scalar>;

namespace detail {

// Products are those of a context. `query` are some rows, `key` too, S[rows, keys]; in backward `key` all of
// them, and S is dense.
template <class Scalar>
struct ScaledScores {
  // Of a score, beside the product, in multiply-accumulates (execution/slices.hpp).
  static constexpr int kWork = 0;
  template <int kDk>
  static constexpr int kWorkOfBackward = 0;
  Scalar scale;

  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void forward(const Query& query, const Key& key, const Scores& s) const {
    Products::gemm(query, key.transpose(), s, kernels::Scale<Scalar>{scale});
  }
  // dS becomes that of scale · Q·Kᵀ. `room` is as large.
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
  // Scores are computed once more: a tape would keep as many of them as weights.
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

}  // namespace attune::inline ATTUNE_ARITHMETIC
