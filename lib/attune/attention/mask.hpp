// Masks: the keys that each query may attend to, composed at compile time with `&&`.
//
//   CausalMask{}                                  hides later tokens
//   KeyPaddingMask<kv_len>, QueryPaddingMask<seq_len>   hide padding
//   SequenceLength<seq_len>                       hides padding and skips it (sequence_length.hpp)
//   AdditiveMask(bias)                            adds a [seq_len, kv_len] matrix to the scaled scores
//   SlidingWindowMask, AlibiBias<num_heads>       window_mask.hpp, alibi.hpp
//   CausalMask{} && padding && AdditiveMask(bias)
//
// A boolean always says *may attend*: true keeps a token. A query with all keys hidden has zero weights, a
// zero context vector and no gradient through the scores (as ONNX Attention-24 defines it), never NaN. Hidden
// values have no influence, even NaN or infinity.
#pragma once

#include <limits>
#include <span>

#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/execution/attention_mask.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/lanes.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

template <class Scalar>
inline constexpr auto kHidden = -std::numeric_limits<kernels::Real<Scalar>>::infinity();

template <class Source>
constexpr void check_lifetime() {
  static_assert(Holds<(!OwnsStorage<Source> || std::is_lvalue_reference_v<Source>)>,
                "attune::AdditiveMask: the matrix is a temporary and does not outlive the mask; store it in "
                "a variable");
}

/// Whether a mask has kv_end<kv_len>(first_query, queries): one more than the last key that any of these
/// queries may attend to.
template <class Mask, int kv_len>
concept SaysEnd = requires(const Mask& mask) {
  mask.template kv_end<kv_len>(0, 1);
};
template <int kv_len, class Mask>
constexpr int kv_end(const Mask&, int, int) {
  return kv_len;
}
template <int kv_len, class Mask>
  requires SaysEnd<Mask, kv_len>
constexpr int kv_end(const Mask& mask, int first_query, int queries) {
  return mask.template kv_end<kv_len>(first_query, queries);
}

template <class Scalar>
constexpr void hide_from(Scalar* row, int first, int kv_len) {
  for (int key = first < 0 ? 0 : first; key < kv_len; ++key) row[key] = kHidden<Scalar>;
}

}  // namespace detail

/// Query i attends to keys 0 … i + offset. `offset` is the number of keys before the first query: kv_len −
/// seq_len if the queries are the last tokens, 0 for the square causal mask.
struct CausalMask {
  int offset = 0;
  template <int kv_len>
  [[nodiscard]] constexpr int kv_end(int first_query, int queries) const {
    return offset >= kv_len ? kv_len : detail::clamp(first_query + queries + offset, 0, kv_len);
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int query, Scalar* row) const {
    if (offset >= kv_len) return;  // and query + offset cannot overflow
    detail::hide_from(row, query + offset + 1, kv_len);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

namespace detail {

// The real tokens among `kLength`, given by count or one by one.
template <int kLength>
class ValidTokens {
 public:
  /// The first `length` tokens are real. Returns Status::kInvalidLength and changes nothing unless 1 ≤ length
  /// ≤ kLength.
  constexpr Status set_length(int length) {
    if (length < 1 || length > kLength) return Status::kInvalidLength;
    for (int token = 0; token < kLength; ++token) padding_[token] = token >= length;
    return Status::kOk;
  }
  /// One value per token: true if the token is real and may be attended to. Takes an array, a list in braces,
  /// or a span. All of them may be padding: attention to no key has zeros.
  constexpr void set_valid(std::span<const bool, std::size_t{kLength}> valid) {
    for (std::size_t token = 0; token < std::size_t{kLength}; ++token) padding_[token] = !valid[token];
  }
  constexpr void set_valid(const bool (&valid)[std::size_t{kLength}]) {
    set_valid(std::span<const bool, std::size_t{kLength}>(valid));
  }
  [[nodiscard]] constexpr bool valid(int token) const { return !padding_[token]; }

 private:
  bool padding_[std::size_t{kLength}] = {};
};

}  // namespace detail

/// Hides padding among the keys. Initially, all kv_len keys are valid.
template <int kKvLen>
struct KeyPaddingMask : detail::ValidTokens<kKvLen> {
  template <int kv_len>
  [[nodiscard]] constexpr bool keeps_key(int key) const {
    static_assert(detail::Holds<(kv_len == kKvLen)>,
                  "attune::KeyPaddingMask: the mask and the layer have different kv_len");
    return this->valid(key);
  }
  template <int kv_len>
  [[nodiscard]] constexpr int kv_end(int, int) const {
    int end = kv_len;
    while (end > 0 && !this->valid(end - 1)) --end;
    return end;
  }
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.kv_len == kKvLen)>,
                  "attune::KeyPaddingMask: the mask and the layer have different kv_len");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar* row) const {
    for (int key = 0; key < kv_len; ++key) {
      if (!this->valid(key)) row[key] = detail::kHidden<Scalar>;
    }
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

/// Gives padding among the queries zero weights and a zero context vector. Initially, all seq_len queries are
/// valid.
template <int kSeqLen>
struct QueryPaddingMask : detail::ValidTokens<kSeqLen> {
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.seq_len == kSeqLen)>,
                  "attune::QueryPaddingMask: the mask's seq_len differs from the layer's, or from the "
                  "cache's capacity in a stream");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int query, Scalar* row) const {
    if (!this->valid(query)) detail::hide_from(row, 0, kv_len);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}
};

/// Adds a [seq_len, kv_len] matrix to the scaled scores: one for all heads, or `kHeads` stacked matrices, one
/// per head. −∞ hides a key. If a query has keys with +∞, it attends to these keys alone, weighed by their
/// scores. Holds a view: the matrix must outlive the mask.
template <class ScalarType, int kSeqLen, int kKvLen, int kHeads = 1>
struct AdditiveMask {
  MatrixView<const ScalarType, kHeads * kSeqLen, kKvLen> matrix;  // added to the scaled scores

  /// Views a matrix; copies nothing.
  explicit constexpr AdditiveMask(MatrixView<const ScalarType, kHeads * kSeqLen, kKvLen> values)
      : matrix(values) {}
  /// Views an owner's numbers. The owner must outlive the mask; a temporary is a compile error.
  template <class Owner>
    requires(detail::OwnsStorage<Owner>)
  explicit constexpr AdditiveMask(Owner&& values) : matrix(values) { detail::check_lifetime<Owner>(); }

  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.kv_len == kKvLen)>,
                  "attune::AdditiveMask: the mask and the layer have different kv_len");
    static_assert(detail::Holds<(shape.seq_len == kSeqLen)>,
                  "attune::AdditiveMask: the mask's seq_len differs from the layer's, or from the cache's "
                  "capacity in a stream");
    static_assert(detail::Holds<(kHeads == 1 || shape.num_heads == kHeads)>,
                  "attune::additive_mask_per_head: the mask and the layer have different numbers of heads");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int head, int query, Scalar* row) const {
    const ScalarType* values = row_of(head, query);
    for (int key = 0; key < kv_len; ++key) {
      if (values[key] == detail::kHidden<ScalarType>) row[key] = detail::kHidden<Scalar>;
    }
  }

  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    const ScalarType* values = row_of(head, query);
    const Scalar hidden = detail::kHidden<Scalar>;
    const Scalar lowest = std::numeric_limits<kernels::Real<Scalar>>::lowest();
    Scalar chosen = hidden;  // the best score with +∞ that is not hidden
    for (int key = 0; key < kv_len; ++key) {
      if (values[key] == -detail::kHidden<ScalarType>) chosen = kernels::maximum(row[key], chosen);
    }
    for (int key = 0; key < kv_len; ++key) {
      if (values[key] == -detail::kHidden<ScalarType>) continue;
      const auto value = static_cast<kernels::Real<Scalar>>(values[key]);
      const Scalar biased =
          kernels::select_less(hidden, chosen, hidden, kernels::add(row[key], Scalar(value)));
      row[key] = kernels::select_less(row[key], lowest, hidden, biased);  // a hidden key's bias may be NaN
    }
  }

 private:
  [[nodiscard]] constexpr const ScalarType* row_of(int head, int query) const {
    return matrix.data + ((kHeads == 1 ? 0 : head * kSeqLen) + query) * kKvLen;
  }
};
template <class Scalar, int kSeqLen, int kKvLen>
AdditiveMask(const Tensor<Scalar, kSeqLen, kKvLen>&) -> AdditiveMask<Scalar, kSeqLen, kKvLen>;
template <class Scalar, int kSeqLen, int kKvLen>
AdditiveMask(MatrixView<Scalar, kSeqLen, kKvLen>)
    -> AdditiveMask<std::remove_const_t<Scalar>, kSeqLen, kKvLen>;

/// One additive mask per head: a Tensor or view [num_heads · seq_len, kv_len], heads stacked.
template <int kHeads, class Source>
[[nodiscard]] constexpr auto additive_mask_per_head(Source&& values) {
  detail::check_lifetime<Source>();
  const auto matrix = view(values);
  constexpr bool kStacked = matrix.rows % kHeads == 0;
  static_assert(detail::Holds<kStacked>,
                "attune::additive_mask_per_head: rows must be num_heads * seq_len, heads stacked");
  constexpr int kParts = kStacked ? kHeads : 1;
  return AdditiveMask<std::remove_const_t<typename decltype(matrix)::Scalar>, matrix.rows / kParts,
                      matrix.cols, kParts>(as_const(matrix));
}

/// Both masks: hides a key if either hides it, then adds both biases. `a && b` copies both masks, so later
/// changes to `a` or `b` have no effect. An AdditiveMask stays a view.
template <AttentionMask First, AttentionMask Second>
struct BothMasks {
  First first;    // applied first
  Second second;  // applied second
  /// Whether both keep the key.
  template <int kv_len>
    requires(detail::SaysPadding<First> || detail::SaysPadding<Second>)
  [[nodiscard]] constexpr bool keeps_key(int key) const {
    return detail::keeps_key<kv_len>(first, key) && detail::keeps_key<kv_len>(second, key);
  }
  [[nodiscard]] constexpr int length() const
      requires(detail::SaysLength<First> || detail::SaysLength<Second>) {
    constexpr int kAny = (std::numeric_limits<int>::max)();
    return detail::smaller(detail::length_of<kAny>(first), detail::length_of<kAny>(second));
  }
  /// The smaller end of the two.
  template <int kv_len>
    requires(detail::SaysEnd<First, kv_len> || detail::SaysEnd<Second, kv_len>)
  [[nodiscard]] constexpr int kv_end(int first_query, int queries) const {
    return detail::smaller(detail::kv_end<kv_len>(first, first_query, queries),
                           detail::kv_end<kv_len>(second, first_query, queries));
  }
  template <ScoreShape shape>
  static constexpr void fits() {
    detail::check_fit<shape, First>();
    detail::check_fit<shape, Second>();
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int head, int query, Scalar* row) const {
    first.template hide<kv_len>(head, query, row);
    second.template hide<kv_len>(head, query, row);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    first.template bias<kv_len>(head, query, row);
    second.template bias<kv_len>(head, query, row);
  }
};

/// Combines two masks: hides a key if either hides it, and adds both biases.
template <AttentionMask First, AttentionMask Second>
[[nodiscard]] constexpr BothMasks<First, Second> operator&&(const First& first, const Second& second) {
  return {first, second};
}

}  // namespace ATTUNE_NAMESPACE
