// Trained biases of scores by relative position (relative_positions.hpp): a mask that hides nothing, and the
// gradient of its table.
//
//   S[h, i, j] += T[h, entry(i, j)],      dT[h, e] += Σ dS[h, i, j] of the pairs with entry(i, j) = e
//
// The sum runs over queries, then keys, and is added to the gradient once per sequence.
#pragma once

#include <type_traits>

#include <attune/attention/attention_shape.hpp>
#include <attune/attention/mask.hpp>
#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Adds the biases of a table[heads, entries]. Query i is at position i + offset, key j at position j.
template <RelativeBias relative, class Element>
struct RelativeBiasMask {
  const Element* table;
  int offset;

  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar*) const {}
  template <int kv_len, class Scalar>
  constexpr void bias(int head, int query, Scalar* row) const {
    const Element* of_head = table + head * relative.entries();
    for (int key = 0; key < kv_len; ++key) {
      row[key] = kernels::add(row[key], Scalar(of_head[relative_entry<relative>(query + offset, key)]));
    }
  }
};

/// Scores of a head whose backward also sums the gradient of its biases, times the scale.
template <AttentionShape shape, class Scores, class Scalar>
struct ScoresWithBias : Scores {
  Scalar* sums;  // of the head
  int keys;      // valid ones, without appended keys

  ATTUNE_INLINE constexpr ScoresWithBias(const Scores& scores, Scalar* to, int key_count)
      : Scores(scores), sums(to), keys(key_count) {}
  template <class Rows, class Gradient>
  ATTUNE_INLINE void backward(const auto& head, const Rows& rows, const Gradient& d_scores,
                              const Gradient& room) const {
    constexpr int kWorkOfSum = 4;  // per score (execution/slices.hpp)
    head.template for_rows_of<kWorkOfSum * Gradient::cols>(
        head.context.in_order(), rows, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          const int from = rows.first + first;
          sum(d_scores.template rows_at<count>(first), from,
              smaller<int>(from + count, head.context.template count<shape.seq_len>()));
        });
    Scores::backward(head, rows, d_scores, room);
  }

 private:
  // Adds rows of dS from `first` on, of queries before `end`.
  template <class Rows>
  ATTUNE_INLINE void sum(const Rows& ds, int first, int end) const {
    for (int query = first; query < end; ++query) {
      const Scalar* row = ds.data + (query - first) * Rows::row_stride;
      for (int key = 0; key < keys; ++key) {
        Scalar& to = sums[relative_entry<shape.relative_bias>(query + shape.offset, key)];
        to = kernels::add(to, row[key]);
      }
    }
  }
};

/// Parameters and scratch of the biases, within MultiHeadAttention's.
template <AttentionShape shape, class ScalarType>
struct RelativeBiases {
  using Scalar = ScalarType;
  static constexpr int kEntries = shape.relative_bias.entries();

  /// T, zero in the beginning. It is trained with biases (BiasesAndNorms).
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, shape.num_heads, kEntries> relative_bias;
    ATTUNE_FIELDS(NormBias(relative_bias))
  };
  using Parameters = ParametersOf<Tensor>;

  /// Sums of one sequence, for the gradient of a trained table.
  template <template <class, int, int> class Matrix, class Gradients,
            bool = IsTrained<decltype(Gradients::relative_bias)>>
  struct StoredIn {
    Tensor<Scalar, shape.num_heads, kEntries> sums;

    void clear(const auto& context) {
      context.stage([&] { sums.set_zero(); });
    }
    /// The scores of a head, which add to its sums in backward.
    template <class Scores>
    ATTUNE_INLINE auto scores_of(int head, const Scores& scores, const auto& keys) {
      return ScoresWithBias<shape, Scores, Scalar>(scores, &sums(head, 0),
                                                   keys.template count<shape.kv_len>());
    }
    /// Adds the gradient of T, from the sums of all heads.
    void add_to(auto& gradients, const auto& context, Scalar scale) const {
      context.stage([&] {
        add_rows(view(gradients.relative_bias), [&](int first, const auto& rows) {
          const Scalar* from = sums.data() + first * kEntries;
          for (int i = 0; i < rows.rows * rows.cols; ++i) {
            rows.data[i] = kernels::add(rows.data[i], kernels::divide(from[i], scale));
          }
        });
      });
    }
  };
  template <template <class, int, int> class Matrix, class Gradients>
  struct StoredIn<Matrix, Gradients, false> : NoOption<shape, Scalar, 3>::template StoredIn<Matrix> {};
  /// The mask that adds the biases.
  ATTUNE_INLINE static constexpr auto mask(const auto& parameters) {
    const auto* table = parameters.relative_bias.data();
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(table)>>;
    return RelativeBiasMask<shape.relative_bias, Element>{table, shape.offset};
  }
};

}  // namespace detail

/// Biases hide no key.
template <RelativeBias relative, class Element>
inline constexpr bool kMasks<detail::RelativeBiasMask<relative, Element>> = false;

}  // namespace ATTUNE_NAMESPACE
