// Multi-head attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2), forward and
// backward.
//
//   Q = X_q·W_q + b_q,   K = X_k·W_k + b_k,   V = X_v·W_v + b_v
//   P_h = softmax(scale · Q_h·K_hᵀ + mask),   O_h = P_h·V_h     for every head h, its columns of Q, K, V, O
//   Y = O·W_o + b_o
//
//   dW_o += Oᵀ·dY,   dO = dY·W_oᵀ,   then head by head as in scaled_dot_product_attention.hpp, then
//   dW_q += X_qᵀ·dQ,   dX_q = dQ·W_qᵀ,   and the same for k and v.
//
// Options (attention_shape.hpp): several query heads share a head of keys and values, whose gradients add up;
// Q and K are normalized, Q is multiplied by a trained factor, both are rotated by position; keys and values
// are appended; scores are capped; the layer has its own mask; training drops elements of P. Weights are kept
// for backward or recomputed in it (recomputed_attention.hpp), with the same bits.
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/attention/attention_heads.hpp>
#include <attune/attention/attention_memory.hpp>
#include <attune/attention/attention_operands.hpp>
#include <attune/attention/attention_parameters.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/cached_attention.hpp>
#include <attune/attention/option_masks.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/pass.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// Multi-head attention: P = softmax(Q·Kᵀ/√d_k + mask) of each head, Y = [P·V of all heads, side by side]·W_o
/// + b_o (Vaswani et al., 2017, section 3.2). Self-attention of x[seq_len, d_model], or cross-attention of
/// query[seq_len, d_model], key[kv_len, d_key] and value[kv_len, d_value]; y[seq_len, d_out].
template <AttentionShape attention_shape, class ScalarType = float>
struct MultiHeadAttention : detail::Steps<MultiHeadAttention<attention_shape, ScalarType>> {
 private:
  static constexpr AttentionShape shape = detail::checked_attention_shape<attention_shape>();
  using Parts = detail::AttentionParameters<shape, ScalarType>;
  using Memory = detail::AttentionMemory<shape, ScalarType>;
  using Operands = detail::AttentionOperands<shape, ScalarType>;
  using Heads = detail::AttentionHeads<shape, ScalarType>;

 public:
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = MultiHeadAttention<shape, Other>;
  static constexpr AttentionShape kShape = shape;
  /// Causal self-attention, token by token (execution/stream.hpp).
  template <int tokens, CacheShape cache>
  using Stream = detail::AttentionStream<MultiHeadAttention, tokens, cache>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("MultiHeadAttention", detail::fingerprint_of(shape));
  /// Whether queries, keys and values may be one matrix.
  static constexpr bool kSelfAttention =
      shape.kv_len == shape.seq_len && shape.d_key == shape.d_model && shape.d_value == shape.d_model;
  static constexpr int kKeys = Memory::kKeys;  // with appended keys

  /// Q = query·W_q + b_q.
  using QueryProjection = typename Parts::QueryProjection;
  /// K = key·W_k + b_k.
  using KeyProjection = typename Parts::KeyProjection;
  /// V = value·W_v + b_v.
  using ValueProjection = typename Parts::ValueProjection;
  /// Y = context·W_o + b_o.
  using OutputProjection = typename Parts::OutputProjection;
  using Norms = typename Parts::Norms;  // of queries and keys
  using Scale = typename Parts::Scale;  // the trained factor of the scores
  /// W_q, b_q, …, W_o, b_o and the tensors of options, each in the given storage.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename Parts::template ParametersOf<Matrix, Vector>;
  /// The tensors. Gradients and moments have the same type. May be const, in flash.
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads its inputs.
  template <class Gradients>
  static constexpr bool kReadsInput = QueryProjection::template kReadsInput<decltype(Gradients::query)> ||
                                      KeyProjection::template kReadsInput<decltype(Gradients::key)> ||
                                      ValueProjection::template kReadsInput<decltype(Gradients::value)>;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kScores,
      .takes_context = true,
      .takes_length = kSelfAttention,
      .scores = {.num_heads = shape.num_heads, .seq_len = shape.seq_len, .kv_len = shape.kv_len},
      .output_may_be_input = true,
      .gradient_may_be_input = true,
      .updates_in_backward = true,
      .recomputes_tape = true,
      .lanes = detail::smaller(QueryProjection::kAbilities.lanes, KeyProjection::kAbilities.lanes),
      .additions = detail::kAdditionsOfAll<QueryProjection, KeyProjection>};

  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;  // queries
  /// Keys of cross-attention.
  using KeyInput = Tensor<Scalar, shape.kv_len, shape.d_key>;
  /// Values of cross-attention.
  using ValueInput = Tensor<Scalar, shape.kv_len, shape.d_value>;
  using Output = Tensor<Scalar, shape.seq_len, shape.d_out>;

  using Weights = typename Memory::Weights;  // of one head
  /// The outputs of the heads, side by side.
  using HeadOutputs = typename Memory::HeadOutputs;
  /// Dropout of attention weights.
  using WeightDropout = typename Memory::WeightDropout;
  /// Number of queries per head whose weights are in memory at once, in inference.
  static constexpr int kQueriesAtOnce = Memory::kQueriesAtOnce;
  /// Values from forward that a backward to these gradients needs, and overwrites.
  template <class Gradients>
  using TapeOf = typename Memory::template TapeOf<Gradients>;
  /// The same with other storage of its matrices.
  template <class Gradients, template <class, int, int> class Matrix>
  using TapeIn = typename Memory::template TapeIn<Gradients, Matrix>;
  using Tape = TapeOf<Parameters>;
  /// Dead after every call, so all layers can share one.
  template <class Gradients>
  using ScratchOf = typename Memory::template ScratchOf<Gradients>;
  using Scratch = ScratchOf<Parameters>;
  /// Scratch of inference. It also holds Q, K, V and O, as there is no tape.
  using InferenceScratch = typename Memory::InferenceScratch;

  // ---- Inference: no tape. `y` may be an input. ----

  /// Cross-attention: y[seq_len, d_out] of query[seq_len, d_model], key[kv_len, d_key], value[kv_len,
  /// d_value].
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    project(parameters, query, key, value, y, context, scratch.outputs(), scratch);
  }
  /// Self-attention: x[seq_len, d_model] is query, key and value.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    check_self_attention();
    project(parameters, x, x, x, y, context, scratch.outputs(), scratch);
  }

  // ---- Training: the tape keeps what backward needs. ----

  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, View<Output> y, TapeOf<GradientSet>& tape,
                      ScratchOf<GradientSet>& scratch, const Call& context = {}) {
    project(parameters, query, key, value, y, context, Memory::outputs_of(tape, scratch), tape, scratch);
  }
  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<GradientSet>& tape,
                      ScratchOf<GradientSet>& scratch, const Call& context = {}) {
    check_self_attention();
    project(parameters, x, x, x, y, context, Memory::outputs_of(tape, scratch), tape, scratch);
  }
  /// Fills the tape of self-attention as forward does, without y. Reads x before it writes to scratch.
  template <class Set = Parameters, class GradientSet, AnyContext Call = Context<>>
  static void recompute_tape(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                             ScratchOf<GradientSet>& scratch, const Call& context = {}) {
    check_self_attention();
    attend(parameters, x, x, x, context, tape.outputs, tape, scratch);
  }

  /// Gradients of cross-attention from dy[seq_len, d_out]. Overwrites d_query[seq_len, d_model],
  /// d_key[kv_len, d_key] and d_value[kv_len, d_value], unless NoGradient; adds to `gradients`; uses up the
  /// tape. `dy` may not overlap the d_… views. `d_query` may be `query`, but not with UpdateInBackward. The
  /// context is forward's. Values hidden by its mask have no influence, and neither has a query with dy zero.
  /// d_key and d_value are zero after the valid keys.
  template <class Set = Parameters, class GradientSet, class DQuery, class DKey, class DValue,
            class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                       ConstView<ValueInput> value, TapeOf<GradientSet>& tape, ConstView<Output> dy,
                       DQuery&& d_query, DKey&& d_key, DValue&& d_value, Gradients& gradients,
                       ScratchOf<GradientSet>& scratch, const Call& context = {}) {
    const auto& mask = with_options(parameters, context);
    const auto keys = context.keys();
    const auto all = Heads::zero_skipping_context(context.with_mask(mask), tape, context.first(query),
                                                  keys.first(key), keys.first(value));
    backward_heads(parameters, tape, dy, gradients, scratch, all);
    backward_projections(parameters, query, key, value, tape, d_query, d_key, d_value, kernels::Assign{},
                         gradients, all.without_mask());
    detail::clear_behind(keys, detail::sink<KeyInput>(d_key));
    detail::clear_behind(keys, detail::sink<ValueInput>(d_value));
  }
  /// Gradients of self-attention: dx[seq_len, d_model] is the sum over the three uses of x. `dy` may not
  /// overlap `dx`. `dx` may be `x`, but not with UpdateInBackward.
  template <class Set = Parameters, class GradientSet, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<GradientSet>& tape,
                       ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<GradientSet>& scratch,
                       const Call& context = {}) {
    backward_from(
        parameters, [&]() ATTUNE_INLINE_LAMBDA { return x; }, tape, dy, dx, gradients, scratch, context);
  }
  /// The same, with x from input(). Calls `input()` once scratch is reusable.
  template <class Set, class Later, class GradientSet, class Dx, class Gradients, AnyContext Call>
  static void backward_from(const Set& parameters, const Later& input, TapeOf<GradientSet>& tape,
                            ConstView<Output> dy, Dx&& dx, Gradients& gradients,
                            ScratchOf<GradientSet>& scratch, const Call& context) {
    check_self_attention();
    const auto& mask = with_options(parameters, context);
    const auto all = context.with_mask(mask);
    backward_heads(parameters, tape, dy, gradients, scratch, Heads::zero_skipping_context(all, tape));
    const ConstView<Input> x = input();
    const auto keys = detail::with_appended<shape>(all).keys();
    const auto products =
        all.without_mask().skipping_zeros(context.first(x), context.first(view(tape.query)),
                                          keys.first(view(tape.key)), keys.first(view(tape.value)));
    const auto to = detail::sink<Input>(dx);
    backward_projections(parameters, x, x, x, tape, to, to, to, kernels::Accumulate{}, gradients, products);
  }

 private:
  // The mask of a context, combined with the masks of the layer's options.
  template <AnyContext Call>
  ATTUNE_INLINE static constexpr decltype(auto) with_options(const auto& parameters, const Call& context) {
    return detail::with_options<Parts>(parameters, context.mask(),
                                       detail::appended_at<shape>(context.keys()));
  }
  static constexpr void check_self_attention() {
    static_assert(detail::Holds<kSelfAttention>,
                  "attune::MultiHeadAttention: self-attention needs kv_len, d_key and d_value equal to "
                  "seq_len and d_model; pass query, key and value");
  }

  // Y, from O in `outputs`.
  static void project(const auto& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, View<Output> y, const auto& context, auto& outputs,
                      auto&... memory) {
    attend(parameters, query, key, value, context, outputs, memory...);
    OutputProjection::forward(parameters.output, outputs, y, context.unmasked());
  }
  // O, unless it is NoOutput. Q, K and V are in `kept`, a tape or the scratch of inference.
  static void attend(const auto& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                     ConstView<ValueInput> value, const auto& context, auto& outputs, auto& kept,
                     auto&... scratch) {
    const auto& dense = context.unmasked();
    QueryProjection::forward(parameters.query, query, kept.query, dense);
    KeyProjection::forward(parameters.key, key, Operands::of_tokens(kept.key), dense.keys());
    ValueProjection::forward(parameters.value, value, Operands::of_tokens(kept.value), dense.keys());
    Operands::finish_queries(parameters, kept, dense);
    Operands::finish_keys(parameters, kept, dense);
    const auto& mask = with_options(parameters, context);
    Heads::forward(context.with_mask(mask), outputs, kept, scratch...);
  }

  // Writes the gradients of the projections' outputs to tape.query, tape.key and tape.value, from dy.
  template <class GradientSet, class Gradients>
  ATTUNE_INLINE static void backward_heads(const auto& parameters, TapeOf<GradientSet>& tape,
                                           ConstView<Output> dy, Gradients& gradients,
                                           ScratchOf<GradientSet>& scratch, const auto& context) {
    HeadOutputs& outputs = Memory::outputs_of(tape, scratch);
    if constexpr (Memory::template kOutputsByHead<GradientSet>) {
      OutputProjection::backward_parameters(outputs, dy, gradients.output, context.without_mask());
      const auto d_output = view(scratch.backward.d_outputs);
      const auto d_outputs = [&](int head) ATTUNE_INLINE_LAMBDA {
        OutputProjection::backward_features(parameters.output, dy, head * shape.d_v, d_output,
                                            context.unmasked());
        return d_output;
      };
      Heads::backward(tape, scratch, d_outputs, context);
    } else {
      OutputProjection::backward_over_input(parameters.output, outputs, dy, gradients.output, context);
      const auto d_outputs = [&](int head) ATTUNE_INLINE_LAMBDA {
        return view(outputs).template columns<shape.d_v>(head * shape.d_v);
      };
      Heads::backward(tape, scratch, d_outputs, context);
    }
    scratch.relative.add_to(gradients.relative, context, Heads::scores().scale);
    Operands::backward(parameters, tape, gradients, context.without_mask());
  }
  // Gradients of the projections' parameters.
  static void backward_parameters(ConstView<Input> query, ConstView<KeyInput> key,
                                  ConstView<ValueInput> value, auto& tape, auto& gradients,
                                  const auto& context) {
    QueryProjection::backward_parameters(query, tape.query, gradients.query, context);
    KeyProjection::backward_parameters(key, Operands::of_tokens(tape.key), gradients.key, context.keys());
    ValueProjection::backward_parameters(value, Operands::of_tokens(tape.value), gradients.value,
                                         context.keys());
  }
  // Gradients of the projections' parameters, and of their inputs. `sum` assigns d_key and d_value, or adds
  // to them.
  template <class Gradients>
  ATTUNE_INLINE static void backward_projections(const auto& parameters, ConstView<Input> query,
                                                 ConstView<KeyInput> key, ConstView<ValueInput> value,
                                                 auto& tape, auto&& d_query, auto&& d_key, auto&& d_value,
                                                 auto sum, Gradients& gradients, const auto& context) {
    in_order_of_updates<detail::UpdatesInSet<Gradients>>(
        [&]() ATTUNE_INLINE_LAMBDA { backward_parameters(query, key, value, tape, gradients, context); },
        [&]() ATTUNE_INLINE_LAMBDA {
          const auto& dense = context.unmasked();
          QueryProjection::backward_input(parameters.query, tape.query, d_query, kernels::Assign{}, dense);
          KeyProjection::backward_input(parameters.key, Operands::of_tokens(tape.key), d_key, sum,
                                        dense.keys());
          ValueProjection::backward_input(parameters.value, Operands::of_tokens(tape.value), d_value, sum,
                                          dense.keys());
        });
  }
};

/// The context of cross-attention with a mask, which must outlive it. The mask's length is the number of
/// valid keys.
template <class Attention, AttentionMask Mask = NoMask, class Slices = RunToCompletion>
[[nodiscard]] constexpr auto cross_context_for(const Mask& mask ATTUNE_LIFETIME_BOUND = {},
                                               const Slices& slices = {}) {
  detail::check_mask<Attention, Mask>();
  const auto keys = detail::valid_tokens<Attention::KeyInput::rows, true>(mask);
  return Context(mask, slices, detail::AllTokens{}, keys);
}
/// Inference of cross-attention with a mask, as for other layers (execution/pass.hpp).
template <class Attention, class Set = typename Attention::Parameters, AttentionMask Mask = NoMask>
void infer(const Set& parameters, ConstView<typename Attention::Input> query,
           ConstView<typename Attention::KeyInput> key, ConstView<typename Attention::ValueInput> value,
           View<typename Attention::Output> y, typename Attention::InferenceScratch& scratch,
           const Mask& mask = {}) {
  Attention::forward(parameters, query, key, value, y, scratch, cross_context_for<Attention>(mask));
}
/// Training: also fills the tape for backward.
template <class Attention, class Set = typename Attention::Parameters, class Tape, class Scratch,
          AttentionMask Mask = NoMask>
void forward(const Set& parameters, ConstView<typename Attention::Input> query,
             ConstView<typename Attention::KeyInput> key, ConstView<typename Attention::ValueInput> value,
             View<typename Attention::Output> y, Tape& tape, Scratch& scratch, const Mask& mask = {}) {
  Attention::forward(parameters, query, key, value, y, tape, scratch, cross_context_for<Attention>(mask));
}
/// Gradients of cross-attention from dy. Overwrites d_query, d_key and d_value, unless NoGradient; adds to
/// `gradients`. The mask is forward's.
template <class Attention, class Set = typename Attention::Parameters, class Tape, class DQuery, class DKey,
          class DValue, class Gradients, class Scratch, AttentionMask Mask = NoMask>
void backward(const Set& parameters, ConstView<typename Attention::Input> query,
              ConstView<typename Attention::KeyInput> key, ConstView<typename Attention::ValueInput> value,
              Tape& tape, ConstView<typename Attention::Output> dy, DQuery&& d_query, DKey&& d_key,
              DValue&& d_value, Gradients& gradients, Scratch& scratch, const Mask& mask = {}) {
  Attention::backward(parameters, query, key, value, tape, dy, d_query, d_key, d_value, gradients, scratch,
                      cross_context_for<Attention>(mask));
}

}  // namespace ATTUNE_NAMESPACE
