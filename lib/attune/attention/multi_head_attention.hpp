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
// On request (attention_shape.hpp) several query heads share one of keys and values, whose gradients add up;
// Q and K are normalised, then rotated by position after their projections; keys and values are appended; the
// scores are capped; the layer has a mask of its own; and in training weights P are dropped. Weights are kept
// for backward, or computed once more in it (recomputed_attention.hpp), with the same bits.
#pragma once

#include <algorithm>

#include <attune/attention/appended_keys.hpp>
#include <attune/attention/attention_shape.hpp>
#include <attune/attention/cached_attention.hpp>
#include <attune/attention/option_masks.hpp>
#include <attune/attention/query_key_norm.hpp>
#include <attune/attention/recomputed_attention.hpp>
#include <attune/attention/rotary_positions.hpp>
#include <attune/attention/scaled_dot_product_attention.hpp>
#include <attune/core/gradient_rows.hpp>
#include <attune/core/roles.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Multi-head attention: P = softmax(Q·Kᵀ/√d_k + mask) of each head, Y = [P·V of the heads side by side]·W_o
/// + b_o (Vaswani et al., 2017, section 3.2). Self-attention of x[seq_len, d_model], or cross-attention of
/// query[seq_len, d_model], key[kv_len, d_key] and value[kv_len, d_value]; y[seq_len, d_out].
template <AttentionShape shape, class ScalarType = float>
struct MultiHeadAttention : detail::Steps<MultiHeadAttention<shape, ScalarType>> {
  static_assert(detail::check_attention_shape<shape>());

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = MultiHeadAttention<shape, Other>;
  static constexpr AttentionShape kShape = shape;
  /// Self-attention token by token, causal (core/stream.hpp).
  template <CacheShape cache>
  using Stream = detail::AttentionStream<MultiHeadAttention, cache>;
  static constexpr std::uint32_t kFingerprint = detail::fingerprint_of(shape);
  /// Whether queries, keys and values may be one matrix.
  static constexpr bool kSelfAttention =
      shape.kv_len == shape.seq_len && shape.d_key == shape.d_model && shape.d_value == shape.d_model;

  static constexpr int kKeys = shape.num_keys();  // with appended ones

  /// Q = query·W_q + b_q.
  using QueryProjection =
      Linear<LinearShape{shape.seq_len, shape.d_model, shape.num_heads* shape.d_k, shape.bias}, Scalar>;
  /// K = key·W_k + b_k.
  using KeyProjection =
      Linear<LinearShape{shape.kv_len, shape.d_key, shape.num_kv_heads* shape.d_k, shape.bias}, Scalar>;
  /// V = value·W_v + b_v.
  using ValueProjection =
      Linear<LinearShape{shape.kv_len, shape.d_value, shape.num_kv_heads* shape.d_v, shape.bias}, Scalar>;
  /// Y = context·W_o + b_o.
  using OutputProjection =
      Linear<LinearShape{shape.seq_len, shape.num_heads* shape.d_v, shape.d_out, shape.bias}, Scalar>;

  using Norms = detail::QueryKeyNorms<shape, Scalar>;
  /// The key and value that `add_bias_kv` and `add_zero_attn` append.
  using Appended = detail::AppendedKeys<shape, Scalar>;

  /// W_q, b_q, …, W_o, b_o and what options add, or what stands for each of these tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    using Form = attune::Form<Matrix, Vector>;
    /// The role of keys: their bias counts only where positions rotate them.
    static constexpr Role kKeyRole = shape.key_bias_counts() ? Role::kRotatedKeys : Role::kKeys;
    /// W_q [d_model, num_heads·d_k], b_q.
    [[no_unique_address]] detail::SetOfMember<QueryProjection, Role::kQueries, Matrix, Vector> query;
    /// W_k [d_key, num_kv_heads·d_k], b_k.
    [[no_unique_address]] detail::SetOfMember<KeyProjection, kKeyRole, Matrix, Vector> key;
    /// W_v [d_value, num_kv_heads·d_v], b_v.
    [[no_unique_address]] detail::SetOfMember<ValueProjection, Role::kValues, Matrix, Vector> value;
    [[no_unique_address]] detail::SetOfMember<OutputProjection, Role::kAttentionOutput, Matrix, Vector>
        output;  // W_o [num_heads·d_v, d_out], b_o
    [[no_unique_address]] detail::SetOfMember<Norms, 4, Matrix, Vector> norms;  // of queries and keys
    [[no_unique_address]] detail::SetOfMember<Appended, 5, Matrix, Vector> appended;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_query{"query", parent}, of_key{"key", parent}, of_value{"value", parent},
          of_output{"output", parent};
      QueryProjection::Parameters::visit(visitor, &of_query, sets.query...);
      KeyProjection::Parameters::visit(visitor, &of_key, sets.key...);
      ValueProjection::Parameters::visit(visitor, &of_value, sets.value...);
      OutputProjection::Parameters::visit(visitor, &of_output, sets.output...);
      Norms::Parameters::visit(visitor, parent, sets.norms...);
      Appended::Parameters::visit(visitor, parent, sets.appended...);
    }
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      if constexpr (std::is_same_v<Initialiser, MultiheadAttentionDefault>) {
        attune::initialise(query, detail::UniformOverFans{kFans<QueryProjection>}, rng);
        attune::initialise(key, detail::UniformOverFans{kFans<KeyProjection>}, rng);
        attune::initialise(value, detail::UniformOverFans{kFans<ValueProjection>}, rng);
        attune::initialise(output, UniformInverseSqrt{}, rng);
      } else {
        attune::initialise(query, initialiser, rng);
        attune::initialise(key, initialiser, rng);
        attune::initialise(value, initialiser, rng);
        attune::initialise(output, initialiser, rng);
      }
      norms.initialise(initialiser, rng);
      appended.initialise(initialiser, rng);
    }
  };
  /// The tensors; gradients and moments have the same type. May be const, in flash.
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads its inputs.
  template <class Gradients>
  static constexpr bool kReadsInput = QueryProjection::template kReadsInput<decltype(Gradients::query)> ||
                                      KeyProjection::template kReadsInput<decltype(Gradients::key)> ||
                                      ValueProjection::template kReadsInput<decltype(Gradients::value)>;
  static constexpr bool kUpdatesInBackward = true;
  static constexpr bool kRunsInLockstep = QueryProjection::kRunsInLockstep && KeyProjection::kRunsInLockstep;
  static constexpr bool kTakesMask = true;
  static constexpr bool kTakesLength = kSelfAttention && kKeys == shape.seq_len;
  static constexpr bool kGradientMayBeInput = true;  // but not with ParameterUpdates

  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;  // queries
  /// Keys of cross-attention.
  using KeyInput = Tensor<Scalar, shape.kv_len, shape.d_key>;
  /// Values of cross-attention.
  using ValueInput = Tensor<Scalar, shape.kv_len, shape.d_value>;
  using Output = Tensor<Scalar, shape.seq_len, shape.d_out>;
  using Weights = Tensor<Scalar, shape.seq_len, kKeys>;  // of one head
  /// Dropout of attention weights.
  using WeightDropout = Dropout<DropoutShape{shape.num_heads * shape.seq_len, kKeys, shape.dropout}, Scalar>;

  /// The outputs of the heads, side by side.
  using Context = Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_v>;
  /// In the place of a member; each another type, so that all can have one address.
  template <int>
  struct None {};

  /// How many query heads share a head of keys and values.
  static constexpr int kGroup = shape.num_heads / shape.num_kv_heads;
  /// How many queries of a head have their weights in memory at a time, in training.
  static constexpr int kQueriesInTraining =
      shape.keep_weights ? shape.seq_len : detail::recomputed_queries(shape.seq_len);

  /// What a backward to these gradients needs of forward. It uses the same storage for the gradients of Q, K,
  /// V and O. O is taped for the gradient of W_o; where that is not trained, it is scratch.
  template <class Gradients>
  struct TapeOf {
    static constexpr bool kKeepsContext = OutputProjection::template kReadsInput<decltype(Gradients::output)>;
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_k> key;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_v> value;
    [[no_unique_address]] std::conditional_t<kKeepsContext, Context, None<0>> context;
    // Heads stacked: P, nothing dropped, or the maximum and one over the sum of each row of e^(S − max).
    [[no_unique_address]] std::conditional_t<shape.keep_weights,
                                             Tensor<Scalar, shape.num_heads * shape.seq_len, kKeys>, None<1>>
        weights;
    [[no_unique_address]] std::conditional_t<shape.keep_weights, None<2>,
                                             Tensor<Scalar, shape.num_heads * shape.seq_len, 2>>
        of_rows;
    [[no_unique_address]] typename Norms::Kept norms;
    [[no_unique_address]] typename WeightDropout::Tape dropout;

    /// P of one head, [seq_len, kv_len]; valid between forward and backward.
    template <bool kKept = shape.keep_weights>
    [[nodiscard]] ConstView<Weights> head_weights(int head) const {
      static_assert(kKept,
                    "attune::MultiHeadAttention: there are no weights to read, they are not kept; set "
                    ".keep_weights = true in AttentionShape");
      if constexpr (kKept) return view(weights).template rows_at<shape.seq_len>(head * shape.seq_len);
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
  using Tape = TapeOf<Parameters>;

  /// And in inference.
  static constexpr int kQueriesAtOnce = std::min(shape.seq_len, 32);
  /// Dead after every call, so all layers can share one. Training: one head's dO, then its dP, then its dQ;
  /// where weights are not kept, its dO, then rows of P.
  template <class Gradients>
  struct ScratchOf {
    static constexpr int kColumnsOfContext =
        (shape.seq_len * shape.d_v + kQueriesInTraining - 1) / kQueriesInTraining;
    Tensor<Scalar, kQueriesInTraining, std::max({kKeys, shape.d_k, kColumnsOfContext})> head;
    [[no_unique_address]] std::conditional_t<
        !shape.keep_weights,
        detail::RecomputeScratch<Scalar, shape.seq_len, kKeys, shape.d_k, shape.d_v, (kGroup > 1)>,
        std::conditional_t<(kGroup > 1), detail::KeyValueSums<Scalar, kKeys, shape.d_k, shape.d_v>, None<2>>>
        of_keys;  // sums of the gradients of keys and values, or what computing weights once more needs
    [[no_unique_address]] std::conditional_t<WeightDropout::kDrops, Tensor<Scalar, kQueriesInTraining, kKeys>,
                                             None<0>>
        dropped;  // rows of a head's P
    [[no_unique_address]] std::conditional_t<TapeOf<Gradients>::kKeepsContext, None<1>, Context> context;
  };
  using Scratch = ScratchOf<Parameters>;
  /// Inference, where no tape keeps them: Q, K, V, O and, for some queries at a time, rows of one head's P.
  struct InferenceScratch {
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_k> key;
    Tensor<Scalar, kKeys, shape.num_kv_heads * shape.d_v> value;
    Context context;
    Tensor<Scalar, kQueriesAtOnce, kKeys> weights;
  };

  // ---- Inference: no tape. `y` may not overlap the inputs. ----

  /// Cross-attention: y[seq_len, d_out] of query[seq_len, d_model], key[kv_len, d_key], value[kv_len,
  /// d_value].
  template <class Set = Parameters, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, View<Output> y, InferenceScratch& scratch,
                      const Mask& mask = {}, const Pieces& pieces = {}) {
    project(parameters, query, key, value, scratch, pieces);
    const auto& all_masks = detail::with_options<shape>(mask);
    const auto terms = terms_of_forward(all_masks, pieces, scratch);
    for (int head = 0; head < shape.num_heads; ++head) {
      attend_in_blocks<kQueriesAtOnce>(
          head, scratch, scratch.context, scratch.weights.data(), all_masks,
          [](int) { return detail::AllWeights{}; }, terms, pieces);
    }
    OutputProjection::forward(parameters.output, scratch.context, y, pieces);
  }
  /// Self-attention: x[seq_len, d_model] is query, key and value.
  template <class Set = Parameters, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Mask& mask = {}, const Pieces& pieces = {}) {
    check_self_attention();
    forward(parameters, x, x, x, y, scratch, mask, pieces);
  }

  // ---- Training: the tape keeps what backward needs. ----

  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, View<Output> y, TapeOf<Kept>& tape,
                      ScratchOf<Kept>& scratch, const Mask& mask = {}, const Pieces& pieces = {}) {
    retape(parameters, query, key, value, tape, scratch, mask, pieces);
    OutputProjection::forward(parameters.output, context_of(tape, scratch), y, pieces);
  }
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Kept>& tape,
                      ScratchOf<Kept>& scratch, const Mask& mask = {}, const Pieces& pieces = {}) {
    check_self_attention();
    forward(parameters, x, x, x, y, tape, scratch, mask, pieces);
  }
  /// What forward tapes, without y. Reads its inputs before it writes to scratch.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void retape(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                     ConstView<ValueInput> value, TapeOf<Kept>& tape, ScratchOf<Kept>& scratch,
                     const Mask& mask = {}, const Pieces& pieces = {}) {
    project(parameters, query, key, value, tape, pieces);
    auto& context = context_of(tape, scratch);
    const auto& all_masks = detail::with_options<shape>(mask);
    const auto terms = terms_of_forward(all_masks, pieces, tape);
    for (int head = 0; head < shape.num_heads; ++head) {
      const auto dropout_from = [&](int first) { return dropout_of(tape, scratch, head, first); };
      if constexpr (shape.keep_weights) {
        pieces.template tokens<shape.seq_len, kWorkOfQuery>([&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
          attend(head, first, tape, context,
                 view(tape.weights).template rows_at<count>(head * shape.seq_len + first), all_masks,
                 dropout_from(first), terms, pieces);
        });
      } else {
        attend_in_blocks<kQueriesInTraining>(head, tape, context, scratch.head.data(), all_masks,
                                             dropout_from, terms, pieces, of_rows(tape, head));
      }
    }
  }
  /// The same of self-attention.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void retape(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ScratchOf<Kept>& scratch,
                     const Mask& mask = {}, const Pieces& pieces = {}) {
    check_self_attention();
    retape(parameters, x, x, x, tape, scratch, mask, pieces);
  }

  /// Gradients of cross-attention from dy[seq_len, d_out]: d_query[seq_len, d_model], d_key[kv_len, d_key]
  /// and d_value[kv_len, d_value] are overwritten, or NoGradient, `gradients` accumulate. The tape is used
  /// up. `dy` may not overlap the d_… views; `d_query` may be `query`, but not with ParameterUpdates. The
  /// mask is forward's: what it hides has no influence, whatever it holds, nor has a query whose dy is zero.
  /// Where weights are not kept they are computed from it: then it is never left out.
  template <class Set = Parameters, class Kept, class DQuery, class DKey, class DValue, class Gradients,
            AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                       ConstView<ValueInput> value, TapeOf<Kept>& tape, ConstView<Output> dy,
                       DQuery&& d_query, DKey&& d_key, DValue&& d_value, Gradients& gradients,
                       ScratchOf<Kept>& scratch, const Mask& mask = {}, const Pieces& pieces = {}) {
    constexpr bool kInputsFirst = detail::kUpdatesInSet<Gradients>;
    constexpr kernels::Assign kAssign{};
    const auto& all_masks = detail::with_options<shape>(mask);
    const auto terms = terms_of_backward(all_masks, pieces, tape, scratch, query, key, value);
    backward_heads(parameters, tape, dy, gradients, scratch, all_masks, terms, pieces);
    if constexpr (!kInputsFirst) backward_projections(query, key, value, tape, gradients, terms, pieces);
    QueryProjection::backward_input(parameters.query, tape.query, d_query, kAssign, pieces);
    KeyProjection::backward_input(parameters.key, projected<KeyProjection>(tape.key), d_key, kAssign, pieces);
    ValueProjection::backward_input(parameters.value, projected<ValueProjection>(tape.value), d_value,
                                    kAssign, pieces);
    if constexpr (kInputsFirst) backward_projections(query, key, value, tape, gradients, terms, pieces);
  }
  /// Gradients of self-attention: dx[seq_len, d_model] is the sum over the three uses of x. `dy` may not
  /// overlap `dx`; `dx` may be `x`, but not with ParameterUpdates.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AttentionMask Mask = NoMask,
            AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {},
                       const Pieces& pieces = {}) {
    backward_from(
        parameters, [&]() ATTUNE_INLINE_LAMBDA { return x; }, tape, dy, dx, gradients, scratch, mask, pieces);
  }
  /// The same, where input() is x, and is asked for it when scratch is dead.
  template <class Set, class Later, class Kept, class Dx, class Gradients, AttentionMask Mask,
            AnyPieces Pieces>
  static void backward_from(const Set& parameters, const Later& input, TapeOf<Kept>& tape,
                            ConstView<Output> dy, Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch,
                            const Mask& mask, const Pieces& pieces) {
    check_self_attention();
    constexpr bool kInputFirst = detail::kUpdatesInSet<Gradients>;
    const auto& all_masks = detail::with_options<shape>(mask);
    backward_heads(parameters, tape, dy, gradients, scratch, all_masks,
                   terms_of_backward(all_masks, pieces, tape, scratch), pieces);
    const ConstView<Input> x = input();
    const auto terms = detail::terms_of<std::remove_cvref_t<decltype(all_masks)>, Pieces>(
        pieces.first(x), pieces.first(view(tape.query)), pieces.first(view(tape.key)),
        pieces.first(view(tape.value)));
    if constexpr (!kInputFirst) backward_projections(x, x, x, tape, gradients, terms, pieces);
    if constexpr (kAsked<Dx>) {
      const View<Input> to = detail::sink<Input>(dx);
      QueryProjection::backward_input(parameters.query, tape.query, to, kernels::Assign{}, pieces);
      KeyProjection::backward_input(parameters.key, projected<KeyProjection>(tape.key), to,
                                    kernels::Accumulate{}, pieces);
      ValueProjection::backward_input(parameters.value, projected<ValueProjection>(tape.value), to,
                                      kernels::Accumulate{}, pieces);
    }
    if constexpr (kInputFirst) backward_projections(x, x, x, tape, gradients, terms, pieces);
  }

 private:
  friend struct detail::AttentionParts<MultiHeadAttention>;

  using Real = kernels::Real<Scalar>;
  static constexpr Real kScoreScale =
      shape.scaling == Scaling::kInverseSqrtDk       ? inverse_square_root<Real>(shape.d_k)
      : shape.scaling == Scaling::kInverseSqrtDModel ? inverse_square_root<Real>(shape.d_model)
                                                     : Real(1);
  // d_k^-¼, applied to Q and K themselves; 1/√√n is the inverse root of the root, so it is found in double.
  static constexpr bool kScaleOperands = shape.scaling == Scaling::kInverseFourthRootDkEach;
  static constexpr Real kOperandScale = [] {
    double root = 1.0 / inverse_square_root<double>(shape.d_k);
    double fourth = root;
    for (int i = 0; i < 64; ++i) fourth = 0.5 * (fourth + root / fourth);
    return static_cast<Real>(1.0 / fourth);
  }();

  using Scores =
      std::conditional_t<(shape.softcap > 0), detail::CappedScores<Scalar>, detail::ScaledScores<Scalar>>;
  static constexpr Scores scores() {
    if constexpr (shape.softcap > 0) {
      return {Scalar(kScoreScale), Scalar(static_cast<Real>(shape.softcap))};
    } else {
      return {Scalar(kScoreScale)};
    }
  }

  // fan_in + fan_out of W_q, W_k and W_v as one matrix where their inputs have one width, else of each alone.
  template <class Projection>
  static constexpr int kFans = shape.d_key == shape.d_model&& shape.d_value == shape.d_model
                                   ? shape.d_model + shape.num_heads* shape.d_k +
                                         shape.num_kv_heads*(shape.d_k + shape.d_v)
                                   : Projection::Input::cols + Projection::Output::cols;

  // Of a query in one head (core/pieces.hpp).
  static constexpr int kWorkOfQuery =
      kKeys * (shape.d_k + shape.d_v + detail::kWorkOfSoftmax + Scores::kWork +
               (WeightDropout::kDrops ? detail::kWorkOfDraw : 0));

  // dK and dV of a group are added up, from zeros.
  using SumOfGroup = std::conditional_t<(kGroup > 1), kernels::Accumulate, kernels::Assign>;

  static constexpr bool kRotates = shape.rotary_dim > 0;
  template <int tokens, int heads, int offset>
  using Rotation = RotaryPositions<RotaryShape{.seq_len = tokens,
                                               .num_heads = heads,
                                               .d_k = shape.d_k,
                                               .rotary_dim = kRotates ? shape.rotary_dim : 2,
                                               .pairs = shape.rotary_pairs,
                                               .base = shape.rotary_base,
                                               .offset = offset},
                                   Scalar>;
  using QueryRotation = Rotation<shape.seq_len, shape.num_heads, shape.offset>;
  using KeyRotation = Rotation<shape.kv_len, shape.num_kv_heads, 0>;

  static constexpr void check_self_attention() {
    static_assert(kSelfAttention,
                  "attune::MultiHeadAttention: one input means self-attention, but kv_len, d_key or d_value "
                  "differ from seq_len and d_model; pass query, key and value");
  }

  // What a projection writes of K or V: all but appended keys.
  template <class Projection, class Keys>
  ATTUNE_INLINE static View<typename Projection::Output> projected(Keys& keys) {
    return View<typename Projection::Output>(keys.data());
  }
  // Q, K and V, normalised, rotated and scaled, to where they are kept.
  static void project(const auto& parameters, ConstView<Input> query, ConstView<KeyInput> key,
                      ConstView<ValueInput> value, auto& kept, const auto& pieces) {
    QueryProjection::forward(parameters.query, query, kept.query, pieces);
    KeyProjection::forward(parameters.key, key, projected<KeyProjection>(kept.key), pieces);
    ValueProjection::forward(parameters.value, value, projected<ValueProjection>(kept.value), pieces);
    Norms::forward(parameters.norms, kept, pieces);
    if constexpr (kRotates) {
      pieces([&]() ATTUNE_INLINE_LAMBDA {
        QueryRotation::forward(kept.query, kept.query, pieces.template count<shape.seq_len>());
      });
      pieces([&]() ATTUNE_INLINE_LAMBDA {
        const auto key_rows = projected<KeyProjection>(kept.key);
        KeyRotation::forward(key_rows, key_rows, pieces.template count<shape.kv_len>());
      });
    }
    detail::append_keys<shape, Scalar>(parameters.appended, kept, pieces);
    scale_operands(kept.query, kept.key, pieces);
  }

  // What a query head reads of K and V.
  static auto key_of(auto& kept, int head) {
    return view(kept.key).template columns<shape.d_k>(shape.kv_head_of(head) * shape.d_k);
  }
  static auto value_of(auto& kept, int head) {
    return view(kept.value).template columns<shape.d_v>(shape.kv_head_of(head) * shape.d_v);
  }

  // A head's columns of O from those of Q, K and V: as many rows from `first` on as `weights` has.
  template <class WeightRows>
  static void attend(int head, auto first, const auto& kept, Context& context, const WeightRows& weights,
                     const auto& mask, const auto& dropout, const auto& terms, const auto& pieces,
                     auto... of_rows) {
    constexpr int kRows = WeightRows::rows;
    detail::attend<shape.num_heads, shape.seq_len>(
        view(kept.query).template rows_at<kRows>(first).template columns<shape.d_k>(head * shape.d_k),
        pieces.first(key_of(kept, head)), pieces.first(value_of(kept, head)),
        view(context).template rows_at<kRows>(first).template columns<shape.d_v>(head * shape.d_v), weights,
        scores(), mask, head, first, dropout, terms, of_rows...);
  }
  // The same for all queries, some at a time, whose weights go to `weights` and are overwritten by the next
  // ones'. `of_rows` is where what masked_softmax keeps of the head's rows goes, if anywhere.
  template <int kAtOnce>
  static void attend_in_blocks(int head, const auto& kept, Context& context, Scalar* weights,
                               const auto& mask, const auto& dropout_from, const auto& terms,
                               const auto& pieces, auto... of_rows) {
    const auto block = [&]<int rows>(int from) ATTUNE_INLINE_LAMBDA {
      pieces.template some_tokens<shape.seq_len, rows, kWorkOfQuery>(
          from, [&]<int count>(auto first) ATTUNE_INLINE_LAMBDA {
            attend(head, from + first, kept, context,
                   first_of(MatrixView<Scalar, count, kKeys>(weights), first), mask,
                   dropout_from(from + first), terms, pieces, (of_rows + 2 * (from + first))...);
          });
    };
    detail::in_blocks<shape.seq_len, kAtOnce>(block, pieces.template count<shape.seq_len>());
  }

  template <class Rows>
  ATTUNE_INLINE static Rows first_of(const Rows& rows, int) {
    return rows;
  }
  template <class Rows>
  ATTUNE_INLINE static auto first_of(const Rows& rows, RowRange range) {
    return rows.template rows_at<Rows::rows>(RowRange{0, range.count});
  }

  // What the tape has of the rows of a head's weights.
  static Scalar* of_rows(auto& tape, int head) { return tape.of_rows.data() + 2 * head * shape.seq_len; }

  // The terms that count in products with V.
  template <class Mask, class Pieces>
  ATTUNE_INLINE static auto terms_of_forward(const Mask&, [[maybe_unused]] const Pieces& pieces,
                                             const auto& kept) {
    return detail::terms_of<Mask, Pieces>(pieces.first(view(kept.value)));
  }
  // What some queries of every head have, `width` scalars each.
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
  // The terms that count in all products of backward.
  template <class Mask, class Pieces>
  static auto terms_of_backward(const Mask&, [[maybe_unused]] const Pieces& pieces,
                                [[maybe_unused]] auto& tape, [[maybe_unused]] auto& scratch,
                                [[maybe_unused]] const auto&... inputs) {
    const auto weights = [&] {
      const auto first = [&]<class Rows>(const Rows& of_head) {
        if constexpr (detail::kHasLength<Pieces>) {
          return FirstQueries<Rows::cols>{of_head.data(), pieces.template count<shape.seq_len>()};
        } else {
          return view(of_head);
        }
      };
      if constexpr (!shape.keep_weights) {
        return first(tape.of_rows);  // finite where a row of weights is
      } else {
        return first(tape.weights);
      }
    }();
    return detail::terms_of<Mask, Pieces>(pieces.first(inputs)..., pieces.first(view(tape.query)),
                                          pieces.first(view(tape.key)), pieces.first(view(tape.value)),
                                          weights, pieces.first(view(context_of(tape, scratch))));
  }

  // From dy to dQ, dK and dV, which stand in tape.query, tape.key and tape.value on return.
  static void backward_heads(const auto& parameters, auto& tape, ConstView<Output> dy, auto& gradients,
                             auto& scratch, const auto& mask, const auto& terms, const auto& pieces) {
    Context& context = context_of(tape, scratch);
    if constexpr (!detail::kUpdatesAtOnce<decltype(gradients.output.weight)>) {
      OutputProjection::backward_parameters(context, dy, gradients.output, terms, pieces);
      OutputProjection::backward_input(parameters.output, dy, context, kernels::Assign{}, pieces);
    } else {
      update_in_place(view(context), dy, parameters.output.weight, view(gradients.output.weight), terms);
      if constexpr (shape.bias) add_column_sums(dy, view(gradients.output.bias));
    }
    for (int head = 0; head < shape.num_heads; ++head) {
      const auto q = view(tape.query).template columns<shape.d_k>(head * shape.d_k);
      const auto k = key_of(tape, head);
      const auto v = value_of(tape, head);
      if constexpr (kGroup > 1) {
        if (head % kGroup == 0) pieces([&] { scratch.of_keys.clear(); });
      }
      const auto d_context = view(context).template columns<shape.d_v>(head * shape.d_v);
      const auto dropout_from = [&](int first) { return dropout_of(tape, scratch, head, first); };
      if constexpr (shape.keep_weights) {
        const auto to = [&](const auto& dk, const auto& dv) ATTUNE_INLINE_LAMBDA {
          detail::attend_backward(
              q, k, v, view(tape.weights).template rows_at<shape.seq_len>(head * shape.seq_len), d_context, q,
              dk, dv, scratch.head.data(), scores(), mask, dropout_from(0), terms, pieces, SumOfGroup{});
        };
        if constexpr (kGroup > 1) {
          to(view(scratch.of_keys.d_key), view(scratch.of_keys.d_value));
        } else {
          to(k, v);
        }
      } else {
        const Scalar* kept = of_rows(tape, head);
        detail::recomputed_attend_backward(q, k, v, d_context, scratch.head.data(), scratch.of_keys, scores(),
                                           mask, head, kept, dropout_from, terms, pieces, SumOfGroup{});
      }
      if constexpr (kGroup > 1) {
        if (head % kGroup == kGroup - 1) pieces([&] { scratch.of_keys.move_to(k, v); });
      }
    }
    if constexpr (WeightDropout::kDrops) pieces([&] { tape.dropout.skip(1); });
    scale_operands(tape.query, tape.key, pieces);
    Appended::backward(tape, gradients.appended, pieces);
    if constexpr (kRotates) {
      pieces([&]() ATTUNE_INLINE_LAMBDA {
        QueryRotation::backward(tape.query, tape.query, pieces.template count<shape.seq_len>());
      });
      pieces([&]() ATTUNE_INLINE_LAMBDA {
        const auto key_rows = projected<KeyProjection>(tape.key);
        KeyRotation::backward(key_rows, key_rows, pieces.template count<shape.kv_len>());
      });
    }
    Norms::backward(parameters.norms, tape, gradients.norms, mask, pieces);
  }

  static void backward_projections(ConstView<Input> query, ConstView<KeyInput> key,
                                   ConstView<ValueInput> value, auto& tape, auto& gradients,
                                   const auto& terms, const auto& pieces) {
    QueryProjection::backward_parameters(query, tape.query, gradients.query, terms, pieces);
    KeyProjection::backward_parameters(key, projected<KeyProjection>(tape.key), gradients.key, terms, pieces);
    ValueProjection::backward_parameters(value, projected<ValueProjection>(tape.value), gradients.value,
                                         terms, pieces);
  }

  template <class Kept>
  static Context& context_of(TapeOf<Kept>& tape, ScratchOf<Kept>& scratch) {
    if constexpr (TapeOf<Kept>::kKeepsContext) {
      return tape.context;
    } else {
      return scratch.context;
    }
  }

  // Drops weights: rows of one head.
  struct DroppedWeights {
    typename WeightDropout::Draws rng;
    Scalar* storage;

    template <int rows>
    using Rows = MatrixView<Scalar, rows, kKeys>;
    template <int rows>
    Rows<rows> kept(const Rows<rows>& weights) const {
      auto draws = rng;
      WeightDropout::drop(weights.rows * weights.cols, draws, weights.data, storage);
      return Rows<rows>(storage);
    }
    template <int rows>
    void backward(const Rows<rows>& d_weights) const {
      auto draws = rng;
      WeightDropout::drop(d_weights.rows * d_weights.cols, draws, d_weights.data, d_weights.data);
    }
    [[nodiscard]] DroppedWeights from_row(int row) const {
      DroppedWeights rows{rng, storage + row * kKeys};
      rows.rng.skip(static_cast<std::uint64_t>(row) * kKeys);
      return rows;
    }
  };
  template <class Kept>
  static auto dropout_of([[maybe_unused]] const TapeOf<Kept>& tape, [[maybe_unused]] ScratchOf<Kept>& scratch,
                         [[maybe_unused]] int head, [[maybe_unused]] int first) {
    if constexpr (WeightDropout::kDrops) {
      DroppedWeights rows{WeightDropout::generator(tape.dropout), scratch.dropped.data()};
      rows.rng.skip(static_cast<std::uint64_t>(head * shape.seq_len + first) * kKeys);
      return rows;
    } else {
      return detail::AllWeights{};
    }
  }

  template <class Query, class Key>
  static void scale_operands(Query& query, Key& key, const auto& pieces) {
    if constexpr (kScaleOperands) {
      pieces([&]() ATTUNE_INLINE_LAMBDA {
        const auto scale = [&]<class Operand>(Operand& operand) {
          const auto rows = pieces.template count<Operand::rows>();
          if constexpr (detail::kHasLength<std::remove_cvref_t<decltype(pieces)>>) {
            for (int i = 0; i < rows; ++i)
              kernels::scale<Operand::cols>(&operand(i, 0), Scalar(kOperandScale));
          } else {
            kernels::scale<Operand::size>(operand.data(), Scalar(kOperandScale));
          }
        };
        scale(query);
        scale(key);
      });
    }
  }
};

namespace detail {

template <AttentionShape shape, class Scalar>
inline constexpr bool kRetapes<MultiHeadAttention<shape, Scalar>> = true;

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
