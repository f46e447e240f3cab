// The memory of MultiHeadAttention: the tape, kept from forward for backward, and the scratch, dead after
// every call.
#pragma once

#include <type_traits>

#include <attune/attention/attention_parameters.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/bias_kv.hpp>
#include <attune/attention/recomputed_attention.hpp>
#include <attune/core/memory.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/portable/prefetch.hpp>
#include <attune/kernels/portable/transpose.hpp>
#include <attune/layers/dropout.hpp>

namespace ATTUNE_NAMESPACE::detail {

// Scratch of one head in backward, and O of all heads. They share memory if O is dead in backward.
template <class OfHead, class Outputs, bool shares_memory>
struct HeadAndOutputs {
  [[no_unique_address]] OfHead backward;
  [[no_unique_address]] Outputs outputs;
};
template <class OfHead, class Outputs>
struct HeadAndOutputs<OfHead, Outputs, true> {
  union {
    OfHead backward;
    Outputs outputs;
  };
};

/// Tape and scratch of MultiHeadAttention.
template <AttentionShape shape, class ScalarType>
struct AttentionMemory {
  using Scalar = ScalarType;
  using Parts = AttentionParameters<shape, Scalar>;
  static constexpr int kKeys = shape.num_keys();         // with appended keys
  using Weights = Tensor<Scalar, shape.seq_len, kKeys>;  // of one head
  using WeightDropout = Dropout<DropoutShape{shape.num_heads * shape.seq_len, kKeys, shape.dropout}, Scalar>;
  /// The outputs of the heads, side by side.
  using HeadOutputs = Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_v>;
  /// Replaces an unused member. Each has its own type, so that all can share one address.
  template <int>
  struct None {};

  /// Number of query heads that share a head of keys and values.
  static constexpr int kGroup = shape.num_heads / shape.num_kv_heads;
  template <template <class, int, int, int, int, bool> class Recompute>
  using RecomputeScratch = Recompute<Scalar, shape.seq_len, kKeys, shape.d_k, shape.d_v, (kGroup > 1)>;
  /// Scalars of one head in turn: P or dP, and dQ, of all queries.
  static constexpr int kOfHead = shape.seq_len * larger(kKeys, shape.d_k);
  /// Whether all queries are one block in backward: with stored weights, or without, if it takes no more
  /// memory than several.
  static constexpr bool kOneBlock =
      shape.keep_weights ||
      sizeof(RecomputeScratch<RecomputeAtOnce>) + sizeof(Scalar) * kOfHead <=
          sizeof(RecomputeScratch<RecomputeInBlocks>) +
              sizeof(Scalar) * static_cast<std::size_t>(recomputed_queries(shape.seq_len) * kKeys);
  /// Number of queries per head whose weights are in memory at once, in training.
  static constexpr int kQueriesInTraining = kOneBlock ? shape.seq_len : recomputed_queries(shape.seq_len);

  /// Values from forward that a backward to these gradients needs. It stores the gradients of Q, K, V and O
  /// in the same memory. O is taped only for the gradient of W_o, else it is scratch. Matrix is the storage
  /// of large members (layers/packed_rows.hpp).
  template <class Gradients, template <class, int, int> class Matrix = Tensor>
  struct TapeIn {
    static constexpr bool kKeepsOutputs =
        Parts::OutputProjection::template kReadsInput<decltype(Gradients::output)>;
    Matrix<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Matrix<Scalar, kKeys, shape.num_kv_heads * shape.d_k> key;
    Matrix<Scalar, kKeys, shape.num_kv_heads * shape.d_v> value;
    [[no_unique_address]] std::conditional_t<kKeepsOutputs,
                                             Matrix<Scalar, HeadOutputs::rows, HeadOutputs::cols>, NoOutput>
        outputs;
    // Stacked by head: P before dropout; or, per row of e^(S − max), the maximum and one over the sum.
    [[no_unique_address]] std::conditional_t<shape.keep_weights,
                                             Matrix<Scalar, shape.num_heads * shape.seq_len, kKeys>, None<1>>
        weights;
    [[no_unique_address]] std::conditional_t<shape.keep_weights, None<2>,
                                             Tensor<Scalar, shape.num_heads * shape.seq_len, 2>>
        softmax_stats;
    [[no_unique_address]] typename Parts::Norms::template StoredIn<Matrix> norms;
    [[no_unique_address]] typename Parts::Scale::template StoredIn<Matrix, decltype(Gradients::scores)>
        scores;
    [[no_unique_address]] typename WeightDropout::Tape dropout;

    /// Visits the members of some tapes: matrices with the context of their rows.
    static void visit(const auto& visitor, const auto& context, auto&... tapes) {
      const auto keys = with_appended<shape>(context).keys();
      visitor.rows(context, tapes.query...);
      visitor.rows(keys, tapes.key...);
      visitor.rows(keys, tapes.value...);
      visitor.rows(context, tapes.outputs...);
      visitor.template stacked<shape.num_heads>(context, keys.template count<kKeys>(), tapes.weights...);
      visitor.member(context, tapes.softmax_stats...);
      decltype(TapeIn::norms)::visit(visitor, context, tapes.norms...);
      decltype(TapeIn::scores)::visit(visitor, context, tapes.scores...);
      visitor.member(context, tapes.dropout...);
    }

    /// P of one head, [seq_len, kv_len]; valid between forward and backward. With a valid length, the rows
    /// after it are undefined, and appended keys may stand further to the front.
    template <bool kKept = shape.keep_weights>
    [[nodiscard]] ConstView<Weights> head_weights(int head) const {
      static_assert(Holds<kKept>,
                    "attune::MultiHeadAttention: attention weights are not kept; set .keep_weights = true in "
                    "AttentionShape");
      constexpr bool kReadable = std::is_same_v<Matrix<Scalar, 1, 1>, Tensor<Scalar, 1, 1>>;
      static_assert(
          Holds<(kReadable || !kKept)>,
          "attune::MultiHeadAttention: the weights of a packed tape cannot be read; leave out QuantizedTape");
      if constexpr (kKept && kReadable)
        return view(weights).template rows_at<shape.seq_len>(head * shape.seq_len);
    }
    /// The mean of P over the heads, written to `mean`.
    template <bool kKept = shape.keep_weights>
    void average_weights(View<Weights> mean) const {
      for (int i = 0; i < shape.seq_len; ++i) {
        for (int j = 0; j < kKeys; ++j) {
          Scalar total = 0;
          for (int head = 0; head < shape.num_heads; ++head) total += head_weights<kKept>(head)(i, j);
          mean(i, j) = total / Scalar(shape.num_heads);
        }
      }
    }
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires WeightDropout::kDrops {
      visitor(dropout);
    }
  };

  template <class Gradients>
  using TapeOf = TapeIn<Gradients>;

  /// The same in inference. With vector units, blocks have similar lengths. One block fits a first-level
  /// cache if it is read several times; keys are then transposed once for all blocks of a head.
  static constexpr int kQueriesAtOnce = [] {
    if constexpr (!kernels::kCopiesTransposed<Scalar>)
      return shape.keep_weights ? smaller(shape.seq_len, 32) : recomputed_queries(shape.seq_len);
    constexpr int kFitting = kernels::detail::kFirstLevelBytes / (kKeys * static_cast<int>(sizeof(Scalar)));
    constexpr int kMax = clamp(kFitting / 4 * 4, 4, 32), kBlocks = (shape.seq_len + kMax - 1) / kMax;
    return smaller(shape.seq_len, ((shape.seq_len + kBlocks - 1) / kBlocks + 3) / 4 * 4);
  }();
  /// Sums of the gradients of keys and values, and memory to recompute weights.
  using KeyGradients = std::conditional_t<
      !shape.keep_weights,
      std::conditional_t<kOneBlock, RecomputeScratch<RecomputeAtOnce>, RecomputeScratch<RecomputeInBlocks>>,
      std::conditional_t<(kGroup > 1), KeyValueSums<Scalar, kKeys, shape.d_k, shape.d_v>, NoKeyValueSums>>;
  /// Whether backward computes dO one head at a time, in memory of its own: if O is not taped, its memory
  /// then serves for `key_gradients`.
  template <class Gradients>
  static constexpr bool kOutputsByHead = !TapeOf<Gradients>::kKeepsOutputs && !std::is_empty_v<KeyGradients>;
  template <bool by_head>
  struct OfHead {
    [[no_unique_address]] KeyGradients key_gradients;
    [[no_unique_address]] std::conditional_t<by_head, Tensor<Scalar, shape.seq_len, shape.d_v>, None<1>>
        d_outputs;
  };
  /// Dead after every call, so all layers can share one. Backward uses `head` for one head's dP and dQ in
  /// turn, or, in several blocks of queries, for rows of P.
  template <class Gradients>
  struct ScratchOf
      : HeadAndOutputs<OfHead<kOutputsByHead<Gradients>>,
                       std::conditional_t<TapeOf<Gradients>::kKeepsOutputs, None<3>, HeadOutputs>,
                       kOutputsByHead<Gradients>> {
    Tensor<Scalar, 1, kOneBlock ? kOfHead : kQueriesInTraining * kKeys> head;
    [[no_unique_address]] std::conditional_t<WeightDropout::kDrops, Tensor<Scalar, kQueriesInTraining, kKeys>,
                                             None<0>>
        dropped;  // rows of a head's P
    [[no_unique_address]] typename Parts::Relative::template StoredIn<Tensor, decltype(Gradients::relative)>
        relative;
  };
  /// K of one head, one key per column. Rows lie an odd number of cache lines apart, to spread over the sets
  /// of the cache.
  struct TransposedKeys {
    static constexpr int kLine = kernels::detail::kLineBytes / static_cast<int>(sizeof(Scalar));
    static constexpr int kRow = ((kKeys + kLine - 1) / kLine | 1) * kLine;
    Tensor<Scalar, shape.d_k, kRow> columns;

    [[nodiscard]] MatrixView<const Scalar, kKeys, shape.d_k, 1, kRow> keys() const {
      return MatrixView<const Scalar, kKeys, shape.d_k, 1, kRow>(columns.data());
    }
    template <class Keys>
    void assign(const Keys& keys) {
      kernels::transpose(keys, MatrixView<Scalar, shape.d_k, kKeys, kRow>(columns.data()), used_rows(keys));
    }
  };
  /// Inference, which has no tape: Q, K, V, O, and rows of one head's P for a block of queries. Each head
  /// reads a row of Q before it writes the row of O, so O overwrites Q if both have one width.
  struct InferenceScratch {
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_k> key;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_v> value;
    [[no_unique_address]] std::conditional_t<shape.d_k == shape.d_v, None<1>, HeadOutputs> outputs_beside;
    Tensor<Scalar, kQueriesAtOnce, kKeys> weights;
    [[no_unique_address]] std::conditional_t<
        (kernels::kCopiesTransposed<Scalar> && kQueriesAtOnce < shape.seq_len), TransposedKeys, None<0>>
        transposed;

    HeadOutputs& outputs() { return existing(outputs_beside, query); }
  };

  /// The memory of the outputs of the heads.
  template <class GradientSet>
  static HeadOutputs& outputs_of(TapeOf<GradientSet>& tape, ScratchOf<GradientSet>& scratch) {
    return existing(tape.outputs, scratch.outputs);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
