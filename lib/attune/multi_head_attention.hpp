// Multi-head attention (Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2), forward and
// backward.
//
//   Q = X_q·W_q + b_q,   K = X_k·W_k + b_k,   V = X_v·W_v + b_v
//   P_h = softmax(scale · Q_h·K_hᵀ + mask),   O_h = P_h·V_h     for every head h, its columns of Q, K, V, O
//   Y = O·W_o + b_o
//
//   dW_o += Oᵀ·dY,   dO = dY·W_oᵀ,   then head by head as in scaled_dot_product_attention.hpp, then
//   dW_q += X_qᵀ·dQ,   dX_q = dQ·W_qᵀ,   and the same for k and v.
#pragma once

#include <algorithm>

#include <attune/linear.hpp>
#include <attune/scaled_dot_product_attention.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// What multiplies Q·Kᵀ.
enum class Scaling {
  kInverseSqrtDk,            // 1/√d_k, the paper's and PyTorch's
  kInverseSqrtDModel,        // 1/√d_model
  kInverseFourthRootDkEach,  // d_k^-¼ on Q and on K before their product, which keeps both small
};

/// Every size and option of the layer. Self-attention needs the first three; the rest follow from them.
struct AttentionShape {
  int seq_len;  // queries
  int d_model;  // width of a query token
  int num_heads;
  int kv_len = seq_len;                               // keys and values
  int d_k = num_heads > 0 ? d_model / num_heads : 0;  // per head: queries and keys
  int d_v = d_k;                                      // per head: values
  int d_key = d_model;                                // width of a key token (PyTorch: kdim)
  int d_value = d_model;                              // width of a value token (PyTorch: vdim)
  int d_out = d_model;                                // width of an output token
  bool bias = true;
  Scaling scaling = Scaling::kInverseSqrtDk;
};

template <AttentionShape shape, class ScalarType = float>
struct MultiHeadAttention {
  static_assert(
      shape.seq_len > 0 && shape.kv_len > 0,
      "attune::MultiHeadAttention: seq_len and kv_len must be positive; set them in AttentionShape");
  static_assert(shape.d_model > 0 && shape.d_key > 0 && shape.d_value > 0 && shape.d_out > 0,
                "attune::MultiHeadAttention: d_model, d_key, d_value and d_out must be positive");
  static_assert(shape.num_heads > 0,
                "attune::MultiHeadAttention: num_heads must be positive; 1 is a single head");
  static_assert(
      shape.num_heads <= 0 || shape.d_k * shape.num_heads == shape.d_model ||
          shape.d_k != shape.d_model / (shape.num_heads > 0 ? shape.num_heads : 1),
      "attune::MultiHeadAttention: d_model is not divisible by num_heads; choose num_heads that divides "
      "d_model, or set d_k and d_v in AttentionShape");
  static_assert(shape.d_k > 0 && shape.d_v > 0,
                "attune::MultiHeadAttention: d_k and d_v must be positive; with more heads "
                "than d_model, set them in AttentionShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = MultiHeadAttention<shape, Other>;
  static constexpr bool kSelfAttention =
      shape.kv_len == shape.seq_len && shape.d_key == shape.d_model && shape.d_value == shape.d_model;

  using QueryProjection =
      Linear<LinearShape{shape.seq_len, shape.d_model, shape.num_heads* shape.d_k, shape.bias}, Scalar>;
  using KeyProjection =
      Linear<LinearShape{shape.kv_len, shape.d_key, shape.num_heads* shape.d_k, shape.bias}, Scalar>;
  using ValueProjection =
      Linear<LinearShape{shape.kv_len, shape.d_value, shape.num_heads* shape.d_v, shape.bias}, Scalar>;
  using OutputProjection =
      Linear<LinearShape{shape.seq_len, shape.num_heads* shape.d_v, shape.d_out, shape.bias}, Scalar>;

  /// W_q, b_q, …, W_o, b_o, or what stands for each of these tensors.
  template <template <class, int, int> class Leaf>
  struct ParametersOf {
    typename QueryProjection::template ParametersOf<Leaf> query;
    typename KeyProjection::template ParametersOf<Leaf> key;
    typename ValueProjection::template ParametersOf<Leaf> value;
    typename OutputProjection::template ParametersOf<Leaf> output;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&... sets) {
      const TensorPath of_query{"query", parent}, of_key{"key", parent}, of_value{"value", parent},
          of_output{"output", parent};
      QueryProjection::Parameters::visit(visitor, &of_query, sets.query...);
      KeyProjection::Parameters::visit(visitor, &of_key, sets.key...);
      ValueProjection::Parameters::visit(visitor, &of_value, sets.value...);
      OutputProjection::Parameters::visit(visitor, &of_output, sets.output...);
    }
  };
  /// The tensors; gradients and moments have the same type. May be const, in flash.
  using Parameters = ParametersOf<Tensor>;
  // What is added to other sets than gradients changes parameters at once: backward uses them before.
  template <class Gradients>
  static constexpr bool kUpdatesAtOnce = !std::is_same_v<Gradients, Parameters>;

  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using KeyInput = Tensor<Scalar, shape.kv_len, shape.d_key>;
  using ValueInput = Tensor<Scalar, shape.kv_len, shape.d_value>;
  using Output = Tensor<Scalar, shape.seq_len, shape.d_out>;
  using Weights = Tensor<Scalar, shape.seq_len, shape.kv_len>;  // of one head

  /// What backward needs of forward. Backward uses the same storage for the gradients of Q, K, V and O.
  struct Tape {
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Tensor<Scalar, shape.kv_len, shape.num_heads * shape.d_k> key;
    Tensor<Scalar, shape.kv_len, shape.num_heads * shape.d_v> value;
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_v> context;
    Tensor<Scalar, shape.num_heads * shape.seq_len, shape.kv_len> weights;  // heads stacked

    /// P of one head, [seq_len, kv_len]; valid between forward and backward.
    [[nodiscard]] MatrixView<const Scalar, shape.seq_len, shape.kv_len> head_weights(int head) const {
      return view(weights).template rows_at<shape.seq_len>(head * shape.seq_len);
    }
    /// The mean of P over the heads, written to `mean`.
    void average_weights(MatrixView<Scalar, shape.seq_len, shape.kv_len> mean) const {
      for (int i = 0; i < shape.seq_len; ++i) {
        for (int j = 0; j < shape.kv_len; ++j) {
          Scalar total = 0;
          for (int head = 0; head < shape.num_heads; ++head) total += head_weights(head)(i, j);
          mean(i, j) = total / Scalar(shape.num_heads);
        }
      }
    }
  };

  /// Dead after every call, so all layers can share one. Training: one head's dO, then its dP, then its dQ.
  struct Scratch {
    Tensor<Scalar, shape.seq_len, std::max({shape.kv_len, shape.d_k, shape.d_v})> head;
  };
  /// Inference, where no tape keeps them: Q, K, V, O and one head's P.
  struct InferenceScratch {
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k> query;
    Tensor<Scalar, shape.kv_len, shape.num_heads * shape.d_k> key;
    Tensor<Scalar, shape.kv_len, shape.num_heads * shape.d_v> value;
    Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_v> context;
    Weights weights;
  };

  using QueryView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;
  using KeyView = MatrixView<const Scalar, shape.kv_len, shape.d_key>;
  using ValueView = MatrixView<const Scalar, shape.kv_len, shape.d_value>;
  using OutputView = MatrixView<Scalar, shape.seq_len, shape.d_out>;
  using OutputGradientView = MatrixView<const Scalar, shape.seq_len, shape.d_out>;
  using QueryGradientView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using KeyGradientView = MatrixView<Scalar, shape.kv_len, shape.d_key>;
  using ValueGradientView = MatrixView<Scalar, shape.kv_len, shape.d_value>;

  // ---- Inference: no tape. `y` may not overlap the inputs. ----

  /// Cross-attention: y[seq_len, d_out] of query[seq_len, d_model], key[kv_len, d_key], value[kv_len,
  /// d_value].
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, QueryView query, KeyView key, ValueView value,
                      OutputView y, InferenceScratch& scratch, const Mask& mask = {}) {
    attend(parameters, query, key, value, y, scratch, mask,
           [&scratch](int) { return view(scratch.weights); });
  }
  /// Self-attention: x[seq_len, d_model] is query, key and value.
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, QueryView x, OutputView y, InferenceScratch& scratch,
                      const Mask& mask = {}) {
    check_self_attention();
    forward(parameters, x, x, x, y, scratch, mask);
  }

  // ---- Training: the tape keeps what backward needs. ----

  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, QueryView query, KeyView key, ValueView value,
                      OutputView y, Tape& tape, Scratch&, const Mask& mask = {}) {
    attend(parameters, query, key, value, y, tape, mask, [&tape](int head) {
      return view(tape.weights).template rows_at<shape.seq_len>(head * shape.seq_len);
    });
  }
  template <AttentionMask Mask = NoMask>
  static void forward(const Parameters& parameters, QueryView x, OutputView y, Tape& tape, Scratch& scratch,
                      const Mask& mask = {}) {
    check_self_attention();
    forward(parameters, x, x, x, y, tape, scratch, mask);
  }

  /// Gradients of cross-attention from dy[seq_len, d_out]: the three inputs' are overwritten, `gradients`
  /// accumulate. The tape is used up. `dy` may not overlap the d_… views; `d_query` may be `query`, but not
  /// with ParameterUpdates. Masks need no mention: what is hidden has zero weight.
  template <class Gradients>
  static void backward(const Parameters& parameters, QueryView query, KeyView key, ValueView value,
                       Tape& tape, OutputGradientView dy, QueryGradientView d_query, KeyGradientView d_key,
                       ValueGradientView d_value, Gradients& gradients, Scratch& scratch) {
    backward_heads(parameters, tape, dy, gradients, scratch);
    if constexpr (!kUpdatesAtOnce<Gradients>) backward_projections(query, key, value, tape, gradients);
    QueryProjection::backward_input(parameters.query, tape.query, d_query);
    KeyProjection::backward_input(parameters.key, tape.key, d_key);
    ValueProjection::backward_input(parameters.value, tape.value, d_value);
    if constexpr (kUpdatesAtOnce<Gradients>) backward_projections(query, key, value, tape, gradients);
  }
  /// Gradients of self-attention: dx[seq_len, d_model] is the sum over the three uses of x. `dx` may be `x`,
  /// but not with ParameterUpdates.
  template <class Gradients>
  static void backward(const Parameters& parameters, QueryView x, Tape& tape, OutputGradientView dy,
                       QueryGradientView dx, Gradients& gradients, Scratch& scratch) {
    check_self_attention();
    backward_heads(parameters, tape, dy, gradients, scratch);
    if constexpr (!kUpdatesAtOnce<Gradients>) backward_projections(x, x, x, tape, gradients);
    QueryProjection::backward_input(parameters.query, tape.query, dx);
    KeyProjection::backward_input(parameters.key, tape.key, dx, kernels::Accumulate{});
    ValueProjection::backward_input(parameters.value, tape.value, dx, kernels::Accumulate{});
    if constexpr (kUpdatesAtOnce<Gradients>) backward_projections(x, x, x, tape, gradients);
  }
  /// The same where nobody asks for dx.
  template <class Gradients>
  static void backward(const Parameters& parameters, QueryView x, Tape& tape, OutputGradientView dy,
                       Gradients& gradients, Scratch& scratch) {
    check_self_attention();
    backward_heads(parameters, tape, dy, gradients, scratch);
    backward_projections(x, x, x, tape, gradients);
  }

 private:
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

  static constexpr void check_self_attention() {
    static_assert(kSelfAttention,
                  "attune::MultiHeadAttention: one input means self-attention, but kv_len, d_key or d_value "
                  "differ from seq_len and d_model; pass query, key and value");
  }

  template <class Activations, class Mask, class WeightsOf>
  static void attend(const Parameters& parameters, QueryView query, KeyView key, ValueView value,
                     OutputView y, Activations& kept, const Mask& mask, const WeightsOf& weights_of) {
    QueryProjection::forward(parameters.query, query, kept.query);
    KeyProjection::forward(parameters.key, key, kept.key);
    ValueProjection::forward(parameters.value, value, kept.value);
    scale_operands(kept.query, kept.key);
    for (int head = 0; head < shape.num_heads; ++head) {
      scaled_dot_product_attention(view(kept.query).template columns<shape.d_k>(head * shape.d_k),
                                   view(kept.key).template columns<shape.d_k>(head * shape.d_k),
                                   view(kept.value).template columns<shape.d_v>(head * shape.d_v),
                                   view(kept.context).template columns<shape.d_v>(head * shape.d_v),
                                   weights_of(head), kScoreScale, mask, head);
    }
    OutputProjection::forward(parameters.output, kept.context, y);
  }

  // From dy to dQ, dK and dV, which stand in tape.query, tape.key and tape.value on return.
  template <class Gradients>
  static void backward_heads(const Parameters& parameters, Tape& tape, OutputGradientView dy,
                             Gradients& gradients, Scratch& scratch) {
    if constexpr (!kUpdatesAtOnce<Gradients>) {
      OutputProjection::backward_parameters(tape.context, dy, gradients.output);
      OutputProjection::backward_input(parameters.output, dy, tape.context);
    } else {
      backward_output_by_head(parameters, tape, dy, gradients, scratch);
    }
    for (int head = 0; head < shape.num_heads; ++head) {
      const auto q = view(tape.query).template columns<shape.d_k>(head * shape.d_k);
      const auto k = view(tape.key).template columns<shape.d_k>(head * shape.d_k);
      const auto v = view(tape.value).template columns<shape.d_v>(head * shape.d_v);
      scaled_dot_product_attention_backward(
          q, k, v, view(tape.weights).template rows_at<shape.seq_len>(head * shape.seq_len),
          view(tape.context).template columns<shape.d_v>(head * shape.d_v), q, k, v, scratch.head.data(),
          kScoreScale);
    }
    scale_operands(tape.query, tape.key);
  }

  // Where W_o may change as soon as its gradient is known: dO of a head, which needs the old one, comes
  // first, and takes the place of O when the gradient of the head's rows of W_o is done with it.
  template <class Gradients>
  static void backward_output_by_head(const Parameters& parameters, Tape& tape, OutputGradientView dy,
                                      Gradients& gradients, Scratch& scratch) {
    const MatrixView<Scalar, shape.seq_len, shape.d_v> d_context(scratch.head.data());
    for (int head = 0; head < shape.num_heads; ++head) {
      const int first = head * shape.d_v;
      const auto weight = view(parameters.output.weight).template rows_at<shape.d_v>(first);
      const auto context = view(tape.context).template columns<shape.d_v>(first);
      kernels::product(dy, weight.transpose(), d_context);
      add_product(context.transpose(), dy, view(gradients.output.weight).template rows_at<shape.d_v>(first));
      for (int i = 0; i < shape.seq_len; ++i) {
        for (int j = 0; j < shape.d_v; ++j) context(i, j) = d_context(i, j);
      }
    }
    if constexpr (shape.bias) add_column_sums(dy, view(gradients.output.bias));
  }

  template <class Gradients>
  static void backward_projections(QueryView query, KeyView key, ValueView value, const Tape& tape,
                                   Gradients& gradients) {
    QueryProjection::backward_parameters(query, tape.query, gradients.query);
    KeyProjection::backward_parameters(key, tape.key, gradients.key);
    ValueProjection::backward_parameters(value, tape.value, gradients.value);
  }

  template <class Query, class Key>
  static void scale_operands(Query& query, Key& key) {
    if constexpr (kScaleOperands) {
      kernels::scale<Query::size>(query.data(), Scalar(kOperandScale));
      kernels::scale<Key::size>(key.data(), Scalar(kOperandScale));
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
