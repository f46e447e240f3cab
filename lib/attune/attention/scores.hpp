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

// forward uses a context's Products. `query` and `key` are blocks of rows, S[rows, keys].
template <class Scalar>
struct ScaledScores {
  // Work per score besides the product, in multiply-accumulates (execution/slices.hpp).
  static constexpr int kWork = 0;
  Scalar scale;

  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void forward(const Query& query, const Key& key, const Scores& s) const {
    Products::gemm(query, key.transpose(), s, kernels::Scale<Scalar>{scale});
  }
  // Limits scaled scores.
  ATTUNE_INLINE static void limit(int, Scalar*) {}
  // Overwrites dS of some rows of a head (attention_backward.hpp) with the gradient of scale · Q·Kᵀ. `room`
  // has the size of dS.
  template <class Rows, class Scores>
  ATTUNE_INLINE static void backward(const auto&, const Rows&, const Scores&, const Scores&) {}
};

template <class Scalar>
struct CappedScores {
  static constexpr int kWork = 30;
  Scalar scale;
  Scalar cap;

  template <class Products = kernels::FloatProducts, class Query, class Key, class Scores>
  ATTUNE_INLINE void forward(const Query& query, const Key& key, const Scores& s) const {
    Products::gemm(query, key.transpose(), s, kernels::Scale<Scalar>{scale});
    constexpr int kTogether = Scores::kDense ? Scores::rows : 1;
    for (int i = 0; i < Scores::rows; i += kTogether)
      limit(kTogether * Scores::cols, s.data + i * Scores::row_stride);
  }
  ATTUNE_INLINE void limit(int count, Scalar* s) const { kernels::softcap(count, s, cap); }
  // Recomputes the scores: a tape would need as much memory for them as for weights.
  template <class Rows, class Scores>
  ATTUNE_INLINE void backward(const auto& head, const Rows& rows, const Scores& d_scores,
                              const Scores& room) const {
    constexpr int kWorkOfScore = std::remove_cvref_t<decltype(head)>::kDk + kWork;
    head.template for_rows<kWorkOfScore * Scores::cols>(
        rows, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          using Products = typename std::remove_cvref_t<decltype(head.context)>::Products;
          const auto scaled = room.template rows_at<count>(first);
          Products::gemm(head.query.template rows_at<count>(rows.first + first), head.key.transpose(), scaled,
                         kernels::Scale<Scalar>{scale});
          kernels::softcap_backward(count * Scores::cols, static_cast<const Scalar*>(scaled.data),
                                    d_scores.template rows_at<count>(first).data, cap);
        });
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
