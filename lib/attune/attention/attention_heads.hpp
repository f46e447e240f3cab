// The heads of MultiHeadAttention, one after the other, each on its columns of Q, K, V and O.
//
//   P_h = softmax(scale · Q_h·K_hᵀ + mask),   O_h = P_h·V_h
//
// Query heads of a group share a head of keys and values, whose gradients add up. Training may drop elements
// of P. It keeps P for backward, or backward recomputes it.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/attention/attention_memory.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/bias_kv.hpp>
#include <attune/attention/recomputed_attention.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/attention/scores.hpp>
#include <attune/core/rng.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// Attention of all heads. The context's mask already includes the shape's options.
template <AttentionShape shape, class Scalar>
struct AttentionHeads {
  using Memory = AttentionMemory<shape, Scalar>;
  using WeightDropout = typename Memory::WeightDropout;
  template <class Gradients>
  using TapeOf = typename Memory::template TapeOf<Gradients>;
  template <class Gradients>
  using ScratchOf = typename Memory::template ScratchOf<Gradients>;
  static constexpr int kKeys = Memory::kKeys;
  using Real = kernels::Real<Scalar>;

  static constexpr Real kScoreScale =
      shape.query_key_norm == QueryKeyNorm::kUnitLength ? Real(1) / Real(shape.d_k)  // query_key_norm.hpp
      : shape.scaling == Scaling::kInverseSqrtDk        ? inverse_square_root<Real>(shape.d_k)
      : shape.scaling == Scaling::kInverseSqrtDModel    ? inverse_square_root<Real>(shape.d_model)
                                                        : Real(1);
  /// Computes scores from queries and keys.
  using Scores = std::conditional_t<(shape.softcap > 0), CappedScores<Scalar>, ScaledScores<Scalar>>;
  static constexpr Scores scores() {
    constexpr auto kCap = static_cast<Real>(shape.softcap);
    return scores_of(first_if<(shape.softcap > 0)>(CappedScale<Scalar>{Scalar(kScoreScale), Scalar(kCap)},
                                                   Scalar(kScoreScale)));
  }

  /// Inference: O from Q, K and V. Each block of queries overwrites the weights of the block before it.
  ATTUNE_INLINE static void forward(const auto& token_context, auto& outputs, auto& scratch) {
    const auto& context = finite_values_context(with_appended<shape>(token_context), scratch);
    context.template repeat<shape.num_heads>([&](int head) ATTUNE_INLINE_LAMBDA {
      if constexpr (kReadsTransposed<decltype(scratch), decltype(context)>) {
        if (head % Memory::kGroup == 0) {
          context.stage([&] { scratch.transposed.assign(context.keys().first(rows_of_key(scratch, head))); });
        }
      }
      attend_in_blocks<Memory::kQueriesAtOnce>(
          head, scratch, outputs, scratch.weights.data(), [](int) { return AllWeights{}; }, context);
    });
  }
  /// Training: O, unless it is NoOutput, and the values that backward needs.
  template <class GradientSet>
  ATTUNE_INLINE static void forward(const auto& token_context, auto& outputs, TapeOf<GradientSet>& tape,
                                    ScratchOf<GradientSet>& scratch) {
    const auto& context = finite_values_context(with_appended<shape>(token_context), tape);
    context.template repeat<shape.num_heads>([&](int head) ATTUNE_INLINE_LAMBDA {
      const auto dropout_from = [&](int first) {
        return dropout_of(tape, scratch, head, first, appended_at<shape>(token_context.keys()));
      };
      if constexpr (shape.keep_weights) {
        context.template tokens<shape.seq_len, kWorkOfQuery>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          attend(head, first, tape, outputs,
                 view(tape.weights).template rows_at<count>(head * shape.seq_len + first),
                 dropout_from(first), context);
        });
      } else {
        attend_in_blocks<Memory::kQueriesInTraining>(head, tape, outputs, scratch.head.data(), dropout_from,
                                                     context, softmax_stats(tape, head));
      }
    });
  }
  /// Overwrites Q, K and V with dQ, dK and dV. d_outputs(head) returns dO of a head, [seq_len, d_v].
  template <class GradientSet>
  ATTUNE_INLINE static void backward(TapeOf<GradientSet>& tape, ScratchOf<GradientSet>& scratch,
                                     const auto& d_outputs, const auto& token_context) {
    const auto& context = with_appended<shape>(token_context);
    auto& key_gradients = scratch.backward.key_gradients;
    scratch.relative.clear(context);
    context.template repeat<shape.num_heads>([&](int head) ATTUNE_INLINE_LAMBDA {
      const auto q = view(tape.query).template columns<shape.d_k>(head * shape.d_k);
      const auto k = rows_of_key(tape, head);
      const auto v = value_of(tape, head);
      if (head % Memory::kGroup == 0) key_gradients.clear(context);
      const auto d_context = d_outputs(head);
      const auto dropout_from = [&](int first) {
        return dropout_of(tape, scratch, head, first, appended_at<shape>(token_context.keys()));
      };
      const auto of_head = scratch.relative.scores_of(head, scores(), token_context.keys());
      if constexpr (Memory::kOneBlock) {
        attend_backward(q, k, v, weights_in_backward(tape, scratch, head), d_context, q,
                        key_gradients.of_key(k), key_gradients.of_value(v), scratch.head.data(), of_head,
                        dropout_from(0), context, typename Memory::KeyGradients::Sum{});
      } else {
        const Scalar* kept = softmax_stats(tape, head);
        recomputed_attend_backward(q, k, v, d_context, scratch.head.data(), key_gradients, of_head, head,
                                   kept, dropout_from, context);
      }
      if (head % Memory::kGroup == Memory::kGroup - 1) {
        key_gradients.move_to(context.keys().first(k), context.keys().first(v), context);
      }
    });
    if constexpr (WeightDropout::kDrops) context.stage([&] { tape.dropout.skip(1); });
  }
  /// The context of all products in backward, from one check that every operand is finite. `inputs` are the
  /// token matrices read by its other products.
  template <AnyContext Call>
  static auto zero_skipping_context(const Call& context, auto& tape, const auto&... inputs) {
    const auto& rows = existing(tape.weights, tape.softmax_stats);  // finite if their weights are
    using First = FirstQueries<std::remove_cvref_t<decltype(rows)>::cols>;
    const auto weights =
        first_if<Call::kHasLength>(First{rows.data(), context.template count<shape.seq_len>()}, view(rows));
    const auto& keys = with_appended<shape>(context).keys();
    return context.skipping_zeros(inputs..., context.first(view(tape.query)), keys.first(view(tape.key)),
                                  keys.first(view(tape.value)), weights, context.first(view(tape.outputs)));
  }

 private:
  // Work per query and head (execution/slices.hpp).
  static constexpr int kWorkOfQuery = kKeys * (shape.d_k + shape.d_v + kWorkOfSoftmax + Scores::kWork +
                                               (WeightDropout::kDrops ? kWorkOfDraw : 0));

  // Whether queries read a transposed copy of K. Integer products do not: they read K itself, whose tokens
  // have one scale each and contiguous numbers.
  template <class GradientSet, class Call>
  static constexpr bool kReadsTransposed = requires(GradientSet kept) {
    kept.transposed.keys();
  }
  &&std::is_same_v<typename std::remove_cvref_t<Call>::Products, kernels::FloatProducts>;
  // The keys and values that a query head reads.
  template <class Call>
  static auto key_of(auto& kept, [[maybe_unused]] int head) {
    if constexpr (kReadsTransposed<decltype(kept), Call>) {
      return kept.transposed.keys();
    } else {
      return rows_of_key(kept, head);
    }
  }
  static auto rows_of_key(auto& kept, int head) {
    return view(kept.key).template columns<shape.d_k>(shape.kv_head_of(head) * shape.d_k);
  }
  static auto value_of(auto& kept, int head) {
    return view(kept.value).template columns<shape.d_v>(shape.kv_head_of(head) * shape.d_v);
  }

  // Attention of one head: its columns of O from its columns of Q, K and V. Computes the rows of `weights`,
  // starting at `first`.
  template <class WeightRows>
  static void attend(int head, auto first, const auto& kept, auto& outputs, const WeightRows& weights,
                     const auto& dropout, const auto& context, auto... softmax_stats) {
    constexpr int kRows = WeightRows::rows;
    detail::attend<shape.num_heads, shape.seq_len>(
        view(kept.query).template rows_at<kRows>(first).template columns<shape.d_k>(head * shape.d_k),
        context.keys().first(key_of<decltype(context)>(kept, head)),
        context.keys().first(value_of(kept, head)),
        view(outputs).template rows_at<kRows>(first).template columns<shape.d_v>(head * shape.d_v), weights,
        scores(), head, first, dropout, context, softmax_stats...);
  }
  // The same for all queries, in blocks. Each block overwrites `weights`. masked_softmax stores its row
  // values at `softmax_stats`, if given.
  template <int kAtOnce>
  static void attend_in_blocks(int head, const auto& kept, auto& outputs, Scalar* weights,
                               const auto& dropout_from, const auto& context, auto... softmax_stats) {
    context.template tokens_at_once<shape.seq_len, kAtOnce, kWorkOfQuery>(
        [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          attend(
              head, first, kept, outputs,
              MatrixView<Scalar, count, kKeys>(context.own(weights)).template rows_at<count>(at_start(first)),
              dropout_from(first), context, (softmax_stats + 2 * first)...);
        });
  }

  // The row values of a head's weights on the tape.
  static Scalar* softmax_stats(auto& tape, int head) {
    return tape.softmax_stats.data() + 2 * head * shape.seq_len;
  }
  // All weights of a head, from the tape or recomputed from it.
  static auto weights_in_backward(auto& tape, [[maybe_unused]] auto& scratch, int head) {
    using Weights = View<typename Memory::Weights>;
    if constexpr (shape.keep_weights) {
      return StoredWeights<Weights>{view(tape.weights).template rows_at<shape.seq_len>(head * shape.seq_len)};
    } else {
      return RecomputedWeights<Weights>{view(scratch.backward.key_gradients.weights), head,
                                        softmax_stats(tape, head)};
    }
  }

  // The context of products with V.
  ATTUNE_INLINE static auto finite_values_context(const auto& context, const auto& kept) {
    return context.skipping_zeros(context.keys().first(view(kept.value)));
  }
  // The first queries of every head, `width` scalars each.
  template <int width>
  struct FirstQueries {
    const Scalar* rows;
    int queries;
    friend bool finite(const FirstQueries& some) {
      bool all = true;
      for (int head = 0; head < shape.num_heads; ++head) {
        all &= kernels::finite<Scalar>(some.queries * width, some.rows + head * shape.seq_len * width);
      }
      return all;
    }
  };

  // Dropout of one head's rows of weights. Draws belong to positions in whole rows. Keys appended at `at`,
  // before kv_len, use their own positions in the row.
  template <class At>
  struct DroppedWeights {
    typename WeightDropout::Draws rng;
    Scalar* storage;
    [[no_unique_address]] At at;

    template <int rows>
    using Rows = MatrixView<Scalar, rows, kKeys>;
    template <int rows>
    Rows<rows> kept(const Rows<rows>& weights) const {
      if constexpr (shape.num_keys() > shape.kv_len && std::is_same_v<At, int>) {  // they move
        copy_n(weights.data, rows * kKeys, storage);
        drop_in_place(Rows<rows>(storage));
      } else {
        auto draws = rng;
        WeightDropout::drop(weights.rows * weights.cols, draws, weights.data, storage);
      }
      return Rows<rows>(storage);
    }
    template <int rows>
    void backward(const Rows<rows>& d_weights) const {
      drop_in_place(d_weights);
    }
    [[nodiscard]] DroppedWeights from_row(int row) const {
      DroppedWeights rows{rng, storage + row * kKeys, at};
      rows.rng.skip(static_cast<std::uint64_t>(row) * kKeys);
      return rows;
    }

   private:
    template <int rows>
    void drop_in_place(const Rows<rows>& weights) const {
      auto draws = rng;
      move_appended(weights, at, shape.kv_len);
      WeightDropout::drop(weights.rows * weights.cols, draws, weights.data, weights.data);
      move_appended(weights, shape.kv_len, at);
    }
    // The columns of appended keys. Leaves zeros in their old places.
    template <int rows>
    ATTUNE_INLINE static void move_appended(const Rows<rows>& weights, int from, int to) {
      if (from == to) return;
      for (int i = 0; i < rows; ++i) {
        for (int key = 0; key < kAppended<shape>; ++key) {
          weights(i, to + key) = weights(i, from + key);
          weights(i, from + key) = Scalar(0);
        }
      }
    }
  };
  template <class GradientSet, class At>
  static auto dropout_of([[maybe_unused]] const TapeOf<GradientSet>& tape,
                         [[maybe_unused]] ScratchOf<GradientSet>& scratch, [[maybe_unused]] int head,
                         [[maybe_unused]] int first, [[maybe_unused]] At at) {
    if constexpr (WeightDropout::kDrops) {
      DroppedWeights<At> rows{WeightDropout::generator(tape.dropout), scratch.dropped.data(), at};
      rows.rng.skip(static_cast<std::uint64_t>(head * shape.seq_len + first) * kKeys);
      return rows;
    } else {
      return AllWeights{};
    }
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
