// One layer of a transformer encoder: self-attention, then a feed-forward network, each in a residual branch
// with layer normalisation (Vaswani et al., "Attention Is All You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    y = norm₂(h + F(h))
//   norm before:   h = x + A(norm₁(x)),    y = h + F(norm₂(h))
//
// A is MultiHeadAttention, F FeedForward. With dropout, in training, attention weights, both branches and F's
// hidden features are dropped, as in PyTorch's nn.TransformerEncoderLayer.
#pragma once

#include <attune/models/transformer_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Every size and option of the layer; the defaults are PyTorch's, but for dropout.
struct EncoderLayerShape {
  int seq_len;  // tokens
  int d_model;  // features of a token
  int num_heads;
  int d_ff;  // features of a token inside the feed-forward network
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;
  double epsilon = 1e-5;  // of the normalisations
  bool bias = true;       // of linear layers and normalisations
  double dropout = 0;     // probability, in training
  int rotary_dim = 0;     // features of a head's queries and keys that are rotated by position; 0: none
};

template <EncoderLayerShape shape, class ScalarType = float>
struct EncoderLayer {
  static_assert(
      shape.seq_len > 0 && shape.d_model > 0 && shape.num_heads > 0 && shape.d_ff > 0,
      "attune::EncoderLayer: seq_len, d_model, num_heads and d_ff must be positive; set all four in "
      "EncoderLayerShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = EncoderLayer<shape, Other>;
  static constexpr bool kNormBefore = shape.norm == NormPlacement::kBefore;
  using SelfAttention = MultiHeadAttention<AttentionShape{.seq_len = shape.seq_len,
                                                          .d_model = shape.d_model,
                                                          .num_heads = shape.num_heads,
                                                          .bias = shape.bias,
                                                          .rotary_dim = shape.rotary_dim,
                                                          .dropout = shape.dropout},
                                           Scalar>;
  using Network = FeedForward<FeedForwardShape{shape.seq_len, shape.d_model, shape.d_ff, shape.activation,
                                               shape.bias, shape.dropout},
                              Scalar>;
  using Norm = LayerNorm<NormShape{shape.seq_len, shape.d_model, shape.epsilon, true, shape.bias}, Scalar>;
  using Branches = detail::Branches<DropoutShape{shape.seq_len, shape.d_model, shape.dropout}, Scalar, 2>;
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Input;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] typename SelfAttention::template ParametersOf<Matrix, Vector> self_attention;
    [[no_unique_address]] typename Network::template ParametersOf<Matrix, Vector> feed_forward;
    [[no_unique_address]] typename Norm::template ParametersOf<Matrix, Vector> norm1;
    [[no_unique_address]] typename Norm::template ParametersOf<Matrix, Vector> norm2;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_attention{"self_attention", parent}, of_network{"feed_forward", parent},
          of_norm1{"norm1", parent}, of_norm2{"norm2", parent};
      SelfAttention::Parameters::visit(visitor, &of_attention, sets.self_attention...);
      Network::Parameters::visit(visitor, &of_network, sets.feed_forward...);
      Norm::Parameters::visit(visitor, &of_norm1, sets.norm1...);
      Norm::Parameters::visit(visitor, &of_norm2, sets.norm2...);
    }
    /// MultiheadAttentionDefault gives PyTorch's nn.TransformerEncoderLayer: its linear layers get
    /// LinearDefault.
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(self_attention, initialiser, rng);
      attune::initialise(feed_forward, detail::linear_initialiser(initialiser), rng);
      attune::initialise(norm1, initialiser, rng);
      attune::initialise(norm2, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput =
      kNormBefore || SelfAttention::template kReadsInput<decltype(Gradients::self_attention)>;

  struct None {};
  /// What backward needs beside x: the residual sums that norms were taken of, and what the parts tape. What
  /// norms gave is computed once more. Backward uses the same storage for gradients.
  template <bool kTrainsMatrices>
  struct AnyTape {
    Input attention_sum;                                                             // x + A(…)
    [[no_unique_address]] std::conditional_t<kNormBefore, None, Input> network_sum;  // h + F(h)
    typename Norm::Tape norm1;
    typename Norm::Tape norm2;
    typename SelfAttention::template AnyTape<kTrainsMatrices> self_attention;
    typename Network::Tape feed_forward;
    [[no_unique_address]] typename Branches::Tape dropout;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(shape.dropout > 0) {
      detail::for_each_dropout(visitor, dropout, feed_forward, self_attention);
    }
  };
  using Tape = AnyTape<true>;

  /// Dead after every call, so all layers can share one.
  template <bool kTrainsMatrices>
  struct AnyScratch {
    Input normalised;  // what a norm gave, then its gradient
    union {
      typename SelfAttention::template AnyScratch<kTrainsMatrices> self_attention;
      typename Network::Scratch feed_forward;
    };
    [[no_unique_address]] typename Branches::Scratch branch;
  };
  using Scratch = AnyScratch<true>;
  /// The tape and scratch of a backward to these gradients.
  template <class Gradients>
  using TapeOf = AnyTape<SelfAttention::template kReadsInput<decltype(Gradients::self_attention)>>;
  template <class Gradients>
  using ScratchOf = AnyScratch<SelfAttention::template kReadsInput<decltype(Gradients::self_attention)>>;
  struct InferenceScratch {
    Input tokens;
    union {
      typename SelfAttention::InferenceScratch self_attention;
      typename Network::InferenceScratch feed_forward;
    };
  };

  using InputView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;
  using InputGradientView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputGradientView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model]; `mask` is attention's. `y` may not overlap `x`.
  template <class Set = Parameters, AttentionMask Mask = NoMask>
  static void forward(const Set& parameters, InputView x, OutputView y, InferenceScratch& scratch,
                      const Mask& mask = {}) {
    typename Norm::InferenceScratch none;
    if constexpr (kNormBefore) {
      Norm::forward(parameters.norm1, x, scratch.tokens, none);
      SelfAttention::forward(parameters.self_attention, scratch.tokens, y, scratch.self_attention, mask);
      kernels::add_to(Input::size, x.data, y.data);
      Norm::forward(parameters.norm2, y, scratch.tokens, none);
      Network::forward(parameters.feed_forward, scratch.tokens, scratch.tokens, scratch.feed_forward);
      kernels::add_to(Input::size, scratch.tokens.data(), y.data);
    } else {
      SelfAttention::forward(parameters.self_attention, x, y, scratch.self_attention, mask);
      kernels::add_to(Input::size, x.data, y.data);
      Norm::forward(parameters.norm1, y, y, none);
      Network::forward(parameters.feed_forward, y, scratch.tokens, scratch.feed_forward);
      kernels::add_to(Input::size, scratch.tokens.data(), y.data);
      Norm::forward(parameters.norm2, y, y, none);
    }
  }

  /// Training: the same, with dropout; the tape keeps what backward needs. `y` may not overlap `x`.
  template <class Set = Parameters, bool kTrainsMatrices, AttentionMask Mask = NoMask>
  static void forward(const Set& parameters, InputView x, OutputView y, AnyTape<kTrainsMatrices>& tape,
                      AnyScratch<kTrainsMatrices>& scratch, const Mask& mask = {}) {
    typename Norm::Scratch none;
    Scalar* attention_sum = tape.attention_sum.data();
    if constexpr (kNormBefore) {
      Norm::forward(parameters.norm1, x, scratch.normalised, tape.norm1, none);
      SelfAttention::forward(parameters.self_attention, scratch.normalised, tape.attention_sum,
                             tape.self_attention, scratch.self_attention, mask);
      Branches::template add<0>(x.data, attention_sum, tape.dropout);
      Norm::forward(parameters.norm2, tape.attention_sum, scratch.normalised, tape.norm2, none);
      Network::forward(parameters.feed_forward, scratch.normalised, y, tape.feed_forward,
                       scratch.feed_forward);
      Branches::template add<1>(attention_sum, y.data, tape.dropout);
    } else {
      SelfAttention::forward(parameters.self_attention, x, tape.attention_sum, tape.self_attention,
                             scratch.self_attention, mask);
      Branches::template add<0>(x.data, attention_sum, tape.dropout);
      Norm::forward(parameters.norm1, tape.attention_sum, scratch.normalised, tape.norm1, none);
      Network::forward(parameters.feed_forward, scratch.normalised, tape.network_sum, tape.feed_forward,
                       scratch.feed_forward);
      Branches::template add<1>(scratch.normalised.data(), tape.network_sum.data(), tape.dropout);
      Norm::forward(parameters.norm2, tape.network_sum, y, tape.norm2, none);
    }
  }

  /// dx[seq_len, d_model] from dy[seq_len, d_model], overwritten; gradients accumulate. The tape is used up.
  /// `dx` may be `dy`.
  template <class Set = Parameters, bool kTrainsMatrices, class Gradients>
  static void backward(const Set& parameters, InputView x, AnyTape<kTrainsMatrices>& tape,
                       OutputGradientView dy, InputGradientView dx, Gradients& gradients,
                       AnyScratch<kTrainsMatrices>& scratch) {
    typename Norm::Scratch none;
    const OutputGradientView d_branch = backward_to_attention(parameters, tape, dy, gradients, scratch);
    if constexpr (kNormBefore) {
      backward_attention(parameters, x, tape, d_branch, gradients, scratch);
      Norm::backward(parameters.norm1, x, tape.norm1, scratch.normalised, dx, gradients.norm1, none);
    } else {
      SelfAttention::backward(parameters.self_attention, x, tape.self_attention, d_branch, dx,
                              gradients.self_attention, scratch.self_attention);
    }
    kernels::add_to(Input::size, tape.attention_sum.data(), dx.data);
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, bool kTrainsMatrices, class Gradients>
  static void backward(const Set& parameters, InputView x, AnyTape<kTrainsMatrices>& tape,
                       OutputGradientView dy, Gradients& gradients, AnyScratch<kTrainsMatrices>& scratch) {
    typename Norm::Scratch none;
    const OutputGradientView d_branch = backward_to_attention(parameters, tape, dy, gradients, scratch);
    if constexpr (kNormBefore) {
      backward_attention(parameters, x, tape, d_branch, gradients, scratch);
      Norm::backward(parameters.norm1, x, tape.norm1, scratch.normalised, gradients.norm1, none);
    } else {
      SelfAttention::backward(parameters.self_attention, x, tape.self_attention, d_branch,
                              gradients.self_attention, scratch.self_attention);
    }
  }

 private:
  // Whether the backward of a part reads what a norm gave, which is then computed once more.
  template <class Gradients>
  static constexpr bool kReadsNormalised =
      SelfAttention::template kReadsInput<decltype(std::declval<Gradients>().self_attention)>;

  // Everything above the sum x + A(…). On return tape.attention_sum is its gradient; what is returned, A's.
  static OutputGradientView backward_to_attention(const auto& parameters, auto& tape, OutputGradientView dy,
                                                  auto& gradients, auto& scratch) {
    typename Norm::Scratch none;
    Input& normalised = scratch.normalised;
    if constexpr (kNormBefore) {
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm2, tape.attention_sum, tape.norm2, normalised);
      }
      Network::backward(parameters.feed_forward, normalised, tape.feed_forward,
                        Branches::template backward<1>(dy, tape.dropout, scratch.branch), normalised,
                        gradients.feed_forward, scratch.feed_forward);
      Norm::backward(parameters.norm2, tape.attention_sum, tape.norm2, normalised, tape.attention_sum,
                     gradients.norm2, none);
      kernels::add_to(Input::size, dy.data, tape.attention_sum.data());
    } else {
      Norm::backward(parameters.norm2, tape.network_sum, tape.norm2, dy, tape.network_sum, gradients.norm2,
                     none);
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm1, tape.attention_sum, tape.norm1, normalised);
      }
      Network::backward(parameters.feed_forward, normalised, tape.feed_forward,
                        Branches::template backward<1>(tape.network_sum, tape.dropout, scratch.branch),
                        normalised, gradients.feed_forward, scratch.feed_forward);
      kernels::add_to(Input::size, tape.network_sum.data(), normalised.data());
      Norm::backward(parameters.norm1, tape.attention_sum, tape.norm1, normalised, tape.attention_sum,
                     gradients.norm1, none);
    }
    return Branches::template backward<0>(tape.attention_sum, tape.dropout, scratch.branch);
  }

  // A after norm₁: on return scratch.normalised is the gradient of norm₁(x).
  static void backward_attention(const auto& parameters, InputView x, auto& tape, OutputGradientView d_branch,
                                 auto& gradients, auto& scratch) {
    if constexpr (kReadsNormalised<decltype(gradients)>) {
      Norm::recompute(parameters.norm1, x, tape.norm1, scratch.normalised);
    }
    SelfAttention::backward(parameters.self_attention, scratch.normalised, tape.self_attention, d_branch,
                            scratch.normalised, gradients.self_attention, scratch.self_attention);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
