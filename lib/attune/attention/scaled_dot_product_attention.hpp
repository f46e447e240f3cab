// Scaled dot-product attention of one head, forward and backward (Vaswani et al., "Attention Is All You
// Need", 2017, eq. 1).
//
//   S = scale · Q·Kᵀ + mask,   P = softmax(S),   O = P·V
//
//   dP = dO·Vᵀ,   dV = Pᵀ·dO,   dS = P ∘ (dP − rowsum(P ∘ dP)),   dQ = scale · dS·K,   dK = scale · dSᵀ·Q
#pragma once

#include <attune/attention/attention_backward.hpp>
#include <attune/attention/attention_weights.hpp>

namespace ATTUNE_NAMESPACE {

/// 1/√n at compile time, the usual scale for n = d_k. Rounded once in float, within 2 ulp in double.
template <class Scalar>
[[nodiscard]] constexpr Scalar inverse_square_root(int n) {
  double root = n > 1 ? n : 1;
  for (int i = 0; i < 64; ++i) root = 0.5 * (root + n / root);  // Newton, to the last bit, at compile time
  return static_cast<Scalar>(1.0 / root);
}

/// output[seq_len, d_v] = softmax(scale · query·keyᵀ + mask) · value, for query[seq_len, d_k], key[kv_len,
/// d_k] and value[kv_len, d_v]. Also writes weights[seq_len, kv_len], whose rows must be contiguous.
/// Arguments are tensors or views. Nothing may overlap. `head`, one of kHeads, is passed to a per-head mask.
/// `dropout.kept(weights)` gives the factors of the values; by default, the weights themselves. `scale` is a
/// number, or a CappedScale (scores.hpp). With a mask, a key with weight zero has no influence, even if it
/// holds NaN.
template <int kHeads = 1, class Query, class Key, class Value, class Output, class Weights, class Scale,
          AttentionMask Mask = NoMask, class Dropout = detail::AllWeights>
void scaled_dot_product_attention(const Query& query, const Key& key, const Value& value, Output&& output,
                                  Weights&& weights, const Scale& scale, const Mask& mask = {}, int head = 0,
                                  Dropout&& dropout = {}) {
  const auto v = view(value);
  detail::attend<kHeads, View<std::remove_cvref_t<Weights>>::rows>(
      view(query), view(key), v, view(output), view(weights),
      detail::scores_of<typename std::remove_cvref_t<Weights>::Scalar>(scale), head, 0, dropout,
      Context(mask).skipping_zeros(v));
}

/// Gradients of the above. In: query, key, value, weights as forward left them, and d_context[seq_len, d_v].
/// Out: d_query[seq_len, d_k], d_key[kv_len, d_k] and d_value[kv_len, d_v], overwritten; they may share the
/// storage of query, key and value. `weights` is used up: it ends as dS. `scratch` has at least seq_len ·
/// max(kv_len, d_k) scalars. The mask is forward's. Hidden values have zero weights and no influence,
/// whatever they hold; neither has a query with d_context zero. `dropout` repeats forward's dropout mask.
template <class Query, class Key, class Value, class Weights, class DContext, class DQuery, class DKey,
          class DValue, class Scale, AttentionMask Mask = NoMask, class Dropout = detail::AllWeights>
void scaled_dot_product_attention_backward(const Query& query, const Key& key, const Value& value,
                                           Weights&& weights, const DContext& d_context, DQuery&& d_query,
                                           DKey&& d_key, DValue&& d_value,
                                           typename std::remove_cvref_t<Weights>::Scalar* scratch,
                                           const Scale& scale, const Mask& mask = {},
                                           Dropout&& dropout = {}) {
  const auto q = view(query);
  const auto k = view(key);
  const auto v = view(value);
  const auto p = view(weights);
  detail::attend_backward(q, k, v, detail::StoredWeights<decltype(p)>{p}, view(d_context), view(d_query),
                          view(d_key), view(d_value), scratch,
                          detail::scores_of<typename std::remove_cvref_t<Weights>::Scalar>(scale), dropout,
                          Context(mask).skipping_zeros(p, q, k, v));
}

}  // namespace ATTUNE_NAMESPACE
