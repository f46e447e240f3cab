// Scaled dot-product attention without projections, head by head (ONNX Attention).
#pragma once

#include "case_mask.hpp"

namespace conformance {

/// What ONNX calls qk_matmul_output.
enum class Scores {
  kNone,
  kProduct,  // scale · Q·Kᵀ
  kCapped,   // behind softcap
  kMasked,   // with the mask
  kWeights,  // after softmax
};

struct AttentionSizes {
  int heads, kv_heads, seq_len, kv_len, d_k, d_v;
  bool heads_in_columns;  // [batch, tokens, heads·d] instead of [batch, heads, tokens, d]
  bool capped = false;
  bool reports_present = false;  // keys and values, those of the past before the others
};

template <class Scalar>
struct AttentionData {
  int batch;
  Scalar scale;
  Scalar softcap;
  const Scalar* query;
  const Scalar* key;
  const Scalar* value;
  MaskData<Scalar> mask;
};

/// The matrix of one head, of so many, in the data of one sequence.
template <AttentionSizes sizes, int heads, int tokens, int width, class Scalar>
auto head_of(Scalar* sequence, int head) {
  constexpr int kRowStride = sizes.heads_in_columns ? heads * width : width;
  return attune::MatrixView<Scalar, tokens, width, kRowStride>(
      sequence + head * (sizes.heads_in_columns ? width : tokens * width));
}

template <AttentionSizes sizes, Scores scores, MaskOptions options, class Scalar>
void attention_case(const AttentionData<Scalar>& data) {
  static attune::Tensor<Scalar, sizes.heads * sizes.seq_len, sizes.d_v> context;
  static attune::Tensor<Scalar, sizes.seq_len, sizes.kv_len> weights;
  constexpr int kQuerySize = sizes.heads * sizes.seq_len * sizes.d_k;
  constexpr int kKeySize = sizes.kv_heads * sizes.kv_len * sizes.d_k;
  constexpr int kValueSize = sizes.kv_heads * sizes.kv_len * sizes.d_v;
  const auto scale = [&] {
    if constexpr (sizes.capped) {
      return attune::CappedScale{data.scale, data.softcap};
    } else {
      return data.scale;
    }
  }();

  for (int i = 0; i < data.batch; ++i) {
    const auto mask = case_mask<options, sizes.seq_len, sizes.kv_len>(data.mask, i);
    for (int head = 0; head < sizes.heads; ++head) {
      constexpr int kHeads = sizes.heads, kKvHeads = sizes.kv_heads;
      const int kv_head = head / (kHeads / kKvHeads);
      const auto query = head_of<sizes, kHeads, sizes.seq_len, sizes.d_k>(data.query + i * kQuerySize, head);
      const auto key = head_of<sizes, kKvHeads, sizes.kv_len, sizes.d_k>(data.key + i * kKeySize, kv_head);
      const auto value =
          head_of<sizes, kKvHeads, sizes.kv_len, sizes.d_v>(data.value + i * kValueSize, kv_head);
      attune::scaled_dot_product_attention<sizes.heads>(
          query, key, value, head_of<sizes, kHeads, sizes.seq_len, sizes.d_v>(context.data(), head), weights,
          scale, mask, head);
      if constexpr (scores == Scores::kProduct) {
        attune::detail::scores_of(data.scale).forward(query, key, view(weights));
      } else if constexpr (scores == Scores::kCapped || scores == Scores::kMasked) {
        attune::detail::scores_of(scale).forward(query, key, view(weights));
      }
      if constexpr (scores == Scores::kMasked) {
        for (int token = 0; token < sizes.seq_len; ++token) {
          Scalar* row = weights.data() + token * sizes.kv_len;
          mask.template hide<sizes.kv_len>(head, token, row);
          mask.template bias<sizes.kv_len>(head, token, row);
        }
      }
      if constexpr (scores != Scores::kNone) report(weights, "qk_matmul_output");
    }
    report(context, "Y");
    if constexpr (sizes.reports_present) {
      report(data.key + i * kKeySize, kKeySize, "present_key");
      report(data.value + i * kValueSize, kValueSize, "present_value");
    }
  }
}

}  // namespace conformance
