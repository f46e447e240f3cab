// One layer of a transformer decoder: causal self-attention, attention to the encoder's output, and a
// feed-forward network, each in a residual branch with layer normalisation (Vaswani et al., "Attention Is All
// You Need", 2017, section 3.1).
//
//   norm after:    h = norm₁(x + A(x)),    g = norm₂(h + C(h, m)),    y = norm₃(g + F(g))
//   norm before:   h = x + A(norm₁(x)),    g = h + C(norm₂(h), m),    y = g + F(norm₃(g))
//
// A and C are MultiHeadAttention, C with keys and values from the memory m, F is FeedForward. With dropout,
// in training, attention weights, the three branches and F's hidden features are dropped, as in PyTorch's
// nn.TransformerDecoderLayer.
#pragma once

#include <attune/models/transformer_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Every size and option of the layer; the defaults are PyTorch's, but for dropout.
struct DecoderLayerShape {
  int seq_len;  // tokens
  int d_model;  // features of a token, and of one of the memory
  int num_heads;
  int d_ff;                  // features of a token inside the feed-forward network
  int memory_len = seq_len;  // tokens of the memory
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kAfter;
  double epsilon = 1e-5;  // of the normalisations
  bool bias = true;       // of linear layers and normalisations
  double dropout = 0;     // probability, in training
  int rotary_dim = 0;     // of a head's queries and keys in self-attention, rotated by position; 0: none
};

template <DecoderLayerShape shape, class ScalarType = float>
struct DecoderLayer {
  static_assert(
      shape.seq_len > 0 && shape.d_model > 0 && shape.num_heads > 0 && shape.d_ff > 0 && shape.memory_len > 0,
      "attune::DecoderLayer: seq_len, d_model, num_heads, d_ff and memory_len must be positive; set "
      "them in DecoderLayerShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = DecoderLayer<shape, Other>;
  static constexpr bool kNormBefore = shape.norm == NormPlacement::kBefore;
  using SelfAttention = MultiHeadAttention<AttentionShape{.seq_len = shape.seq_len,
                                                          .d_model = shape.d_model,
                                                          .num_heads = shape.num_heads,
                                                          .bias = shape.bias,
                                                          .rotary_dim = shape.rotary_dim,
                                                          .dropout = shape.dropout},
                                           Scalar>;
  using CrossAttention = MultiHeadAttention<AttentionShape{.seq_len = shape.seq_len,
                                                           .d_model = shape.d_model,
                                                           .num_heads = shape.num_heads,
                                                           .kv_len = shape.memory_len,
                                                           .bias = shape.bias,
                                                           .dropout = shape.dropout},
                                            Scalar>;
  using Network = FeedForward<FeedForwardShape{shape.seq_len, shape.d_model, shape.d_ff, shape.activation,
                                               shape.bias, shape.dropout},
                              Scalar>;
  using Norm = LayerNorm<NormShape{shape.seq_len, shape.d_model, shape.epsilon, true, shape.bias}, Scalar>;
  using Branches = detail::Branches<DropoutShape{shape.seq_len, shape.d_model, shape.dropout}, Scalar, 3>;
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Memory = Tensor<Scalar, shape.memory_len, shape.d_model>;
  using Output = Input;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] typename SelfAttention::template ParametersOf<Matrix, Vector> self_attention;
    [[no_unique_address]] typename CrossAttention::template ParametersOf<Matrix, Vector> cross_attention;
    [[no_unique_address]] typename Network::template ParametersOf<Matrix, Vector> feed_forward;
    [[no_unique_address]] typename Norm::template ParametersOf<Matrix, Vector> norm1;
    [[no_unique_address]] typename Norm::template ParametersOf<Matrix, Vector> norm2;
    [[no_unique_address]] typename Norm::template ParametersOf<Matrix, Vector> norm3;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      const TensorPath of_self{"self_attention", parent}, of_cross{"cross_attention", parent},
          of_network{"feed_forward", parent}, of_norm1{"norm1", parent}, of_norm2{"norm2", parent},
          of_norm3{"norm3", parent};
      SelfAttention::Parameters::visit(visitor, &of_self, sets.self_attention...);
      CrossAttention::Parameters::visit(visitor, &of_cross, sets.cross_attention...);
      Network::Parameters::visit(visitor, &of_network, sets.feed_forward...);
      Norm::Parameters::visit(visitor, &of_norm1, sets.norm1...);
      Norm::Parameters::visit(visitor, &of_norm2, sets.norm2...);
      Norm::Parameters::visit(visitor, &of_norm3, sets.norm3...);
    }
    /// MultiheadAttentionDefault gives PyTorch's nn.TransformerDecoderLayer: its linear layers get
    /// LinearDefault.
    template <class Initialiser>
    void initialise(const Initialiser& initialiser, Rng& rng) {
      attune::initialise(self_attention, initialiser, rng);
      attune::initialise(cross_attention, initialiser, rng);
      attune::initialise(feed_forward, detail::linear_initialiser(initialiser), rng);
      for (auto* norm : {&norm1, &norm2, &norm3}) attune::initialise(*norm, initialiser, rng);
    }
  };
  using Parameters = ParametersOf<Tensor>;

  struct None {};
  /// What backward needs beside x and the memory: the residual sums that norms were taken of, and what the
  /// parts tape. What norms gave is computed once more. Backward uses the same storage for gradients.
  template <bool kTrainsMatrices>
  struct AnyTape {
    Input self_sum;                                                                  // x + A(…)
    Input cross_sum;                                                                 // h + C(…)
    [[no_unique_address]] std::conditional_t<kNormBefore, None, Input> network_sum;  // g + F(g)
    typename Norm::Tape norm1;
    typename Norm::Tape norm2;
    typename Norm::Tape norm3;
    typename SelfAttention::template AnyTape<kTrainsMatrices> self_attention;
    typename CrossAttention::template AnyTape<kTrainsMatrices> cross_attention;
    typename Network::Tape feed_forward;
    [[no_unique_address]] typename Branches::Tape dropout;

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(shape.dropout > 0) {
      detail::for_each_dropout(visitor, dropout, feed_forward, self_attention, cross_attention);
    }
  };
  using Tape = AnyTape<true>;

  template <bool kTrainsMatrices>
  struct CrossScratch {
    typename CrossAttention::template AnyScratch<kTrainsMatrices> scratch;
    Memory d_value;  // of the memory as values; as keys it goes to d_memory
  };
  /// Dead after every call, so all layers can share one.
  template <bool kTrainsMatrices>
  struct AnyScratch {
    Input normalised;  // what a norm gave, then its gradient
    union {
      typename SelfAttention::template AnyScratch<kTrainsMatrices> self_attention;
      CrossScratch<kTrainsMatrices> cross_attention;
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
    Input branch;
    union {
      typename SelfAttention::InferenceScratch self_attention;
      typename CrossAttention::InferenceScratch cross_attention;
      typename Network::InferenceScratch feed_forward;
    };
  };

  using InputView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;
  using InputGradientView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using MemoryView = MatrixView<const Scalar, shape.memory_len, shape.d_model>;
  using MemoryGradientView = MatrixView<Scalar, shape.memory_len, shape.d_model>;
  using OutputView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputGradientView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model] and memory[memory_len, d_model]; `mask` is
  /// self-attention's, `memory_mask` the other's. `y` may not overlap them.
  template <class Set = Parameters, AttentionMask Mask = CausalMask, AttentionMask MemoryMask = NoMask>
  static void forward(const Set& parameters, InputView x, MemoryView memory, OutputView y,
                      InferenceScratch& scratch, const Mask& mask = {}, const MemoryMask& memory_mask = {}) {
    typename Norm::InferenceScratch none;
    // What a branch reads: the tokens normalised, or as they are.
    const auto branch_input = [&](const auto& norm, InputView tokens) -> InputView {
      if constexpr (!kNormBefore) return tokens;
      Norm::forward(norm, tokens, scratch.tokens, none);
      return scratch.tokens;
    };
    const auto end_branch = [&](const auto& norm, InputView to_add) {
      kernels::add_to(Input::size, to_add.data, y.data);
      if constexpr (!kNormBefore) Norm::forward(norm, y, y, none);
    };
    SelfAttention::forward(parameters.self_attention, branch_input(parameters.norm1, x), y,
                           scratch.self_attention, mask);
    end_branch(parameters.norm1, x);
    CrossAttention::forward(parameters.cross_attention, branch_input(parameters.norm2, y), memory, memory,
                            scratch.branch, scratch.cross_attention, memory_mask);
    end_branch(parameters.norm2, scratch.branch);
    Network::forward(parameters.feed_forward, branch_input(parameters.norm3, y), scratch.branch,
                     scratch.feed_forward);
    end_branch(parameters.norm3, scratch.branch);
  }

  /// Training: the same, with dropout; the tape keeps what backward needs.
  template <class Set = Parameters, bool kTrainsMatrices, AttentionMask Mask = CausalMask,
            AttentionMask MemoryMask = NoMask>
  static void forward(const Set& parameters, InputView x, MemoryView memory, OutputView y,
                      AnyTape<kTrainsMatrices>& tape, AnyScratch<kTrainsMatrices>& scratch,
                      const Mask& mask = {}, const MemoryMask& memory_mask = {}) {
    typename Norm::Scratch none;
    Input& normalised = scratch.normalised;
    if constexpr (kNormBefore) {
      Norm::forward(parameters.norm1, x, normalised, tape.norm1, none);
      SelfAttention::forward(parameters.self_attention, normalised, tape.self_sum, tape.self_attention,
                             scratch.self_attention, mask);
      Branches::template add<0>(x.data, tape.self_sum.data(), tape.dropout);
      Norm::forward(parameters.norm2, tape.self_sum, normalised, tape.norm2, none);
      CrossAttention::forward(parameters.cross_attention, normalised, memory, memory, tape.cross_sum,
                              tape.cross_attention, scratch.cross_attention.scratch, memory_mask);
      Branches::template add<1>(tape.self_sum.data(), tape.cross_sum.data(), tape.dropout);
      Norm::forward(parameters.norm3, tape.cross_sum, normalised, tape.norm3, none);
      Network::forward(parameters.feed_forward, normalised, y, tape.feed_forward, scratch.feed_forward);
      Branches::template add<2>(tape.cross_sum.data(), y.data, tape.dropout);
    } else {
      SelfAttention::forward(parameters.self_attention, x, tape.self_sum, tape.self_attention,
                             scratch.self_attention, mask);
      Branches::template add<0>(x.data, tape.self_sum.data(), tape.dropout);
      Norm::forward(parameters.norm1, tape.self_sum, normalised, tape.norm1, none);
      CrossAttention::forward(parameters.cross_attention, normalised, memory, memory, tape.cross_sum,
                              tape.cross_attention, scratch.cross_attention.scratch, memory_mask);
      Branches::template add<1>(normalised.data(), tape.cross_sum.data(), tape.dropout);
      Norm::forward(parameters.norm2, tape.cross_sum, normalised, tape.norm2, none);
      Network::forward(parameters.feed_forward, normalised, tape.network_sum, tape.feed_forward,
                       scratch.feed_forward);
      Branches::template add<2>(normalised.data(), tape.network_sum.data(), tape.dropout);
      Norm::forward(parameters.norm3, tape.network_sum, y, tape.norm3, none);
    }
  }

  /// dx[seq_len, d_model] and d_memory[memory_len, d_model] from dy[seq_len, d_model], overwritten; gradients
  /// accumulate. The tape is used up. `dx` may be `dy`.
  template <class Set = Parameters, bool kTrainsMatrices, class Gradients>
  static void backward(const Set& parameters, InputView x, MemoryView memory, AnyTape<kTrainsMatrices>& tape,
                       OutputGradientView dy, InputGradientView dx, MemoryGradientView d_memory,
                       Gradients& gradients, AnyScratch<kTrainsMatrices>& scratch) {
    typename Norm::Scratch none;
    const OutputGradientView d_branch =
        backward_to_self_attention(parameters, memory, tape, dy, d_memory, gradients, scratch);
    if constexpr (kNormBefore) {
      backward_self_attention(parameters, x, tape, d_branch, gradients, scratch);
      Norm::backward(parameters.norm1, x, tape.norm1, scratch.normalised, dx, gradients.norm1, none);
    } else {
      SelfAttention::backward(parameters.self_attention, x, tape.self_attention, d_branch, dx,
                              gradients.self_attention, scratch.self_attention);
    }
    kernels::add_to(Input::size, tape.self_sum.data(), dx.data);
  }
  /// The same where nobody asks for dx.
  template <class Set = Parameters, bool kTrainsMatrices, class Gradients>
  static void backward(const Set& parameters, InputView x, MemoryView memory, AnyTape<kTrainsMatrices>& tape,
                       OutputGradientView dy, MemoryGradientView d_memory, Gradients& gradients,
                       AnyScratch<kTrainsMatrices>& scratch) {
    typename Norm::Scratch none;
    const OutputGradientView d_branch =
        backward_to_self_attention(parameters, memory, tape, dy, d_memory, gradients, scratch);
    if constexpr (kNormBefore) {
      backward_self_attention(parameters, x, tape, d_branch, gradients, scratch);
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

  // Everything above the sum x + A(…). On return tape.self_sum is its gradient; what is returned, A's.
  static OutputGradientView backward_to_self_attention(const auto& parameters, MemoryView memory, auto& tape,
                                                       OutputGradientView dy, MemoryGradientView d_memory,
                                                       auto& gradients, auto& scratch) {
    typename Norm::Scratch none;
    Input& normalised = scratch.normalised;
    if constexpr (kNormBefore) {
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm3, tape.cross_sum, tape.norm3, normalised);
      }
      backward_network(parameters, tape, dy, gradients, scratch);
      Norm::backward(parameters.norm3, tape.cross_sum, tape.norm3, normalised, tape.cross_sum,
                     gradients.norm3, none);
      kernels::add_to(Input::size, dy.data, tape.cross_sum.data());
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm2, tape.self_sum, tape.norm2, normalised);
      }
      backward_cross_attention(parameters, memory, tape, d_memory, gradients, scratch);
      Norm::backward(parameters.norm2, tape.self_sum, tape.norm2, normalised, tape.self_sum, gradients.norm2,
                     none);
      kernels::add_to(Input::size, tape.cross_sum.data(), tape.self_sum.data());
    } else {
      Norm::backward(parameters.norm3, tape.network_sum, tape.norm3, dy, tape.network_sum, gradients.norm3,
                     none);
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm2, tape.cross_sum, tape.norm2, normalised);
      }
      backward_network(parameters, tape, tape.network_sum, gradients, scratch);
      kernels::add_to(Input::size, tape.network_sum.data(), normalised.data());
      Norm::backward(parameters.norm2, tape.cross_sum, tape.norm2, normalised, tape.cross_sum,
                     gradients.norm2, none);
      if constexpr (kReadsNormalised<decltype(gradients)>) {
        Norm::recompute(parameters.norm1, tape.self_sum, tape.norm1, normalised);
      }
      backward_cross_attention(parameters, memory, tape, d_memory, gradients, scratch);
      kernels::add_to(Input::size, tape.cross_sum.data(), normalised.data());
      Norm::backward(parameters.norm1, tape.self_sum, tape.norm1, normalised, tape.self_sum, gradients.norm1,
                     none);
    }
    return Branches::template backward<0>(tape.self_sum, tape.dropout, scratch.branch);
  }

  // The branches, from the gradient of their sum: scratch.normalised, their input, becomes its gradient.
  static void backward_network(const auto& parameters, auto& tape, OutputGradientView d_sum, auto& gradients,
                               auto& scratch) {
    Network::backward(parameters.feed_forward, scratch.normalised, tape.feed_forward,
                      Branches::template backward<2>(d_sum, tape.dropout, scratch.branch), scratch.normalised,
                      gradients.feed_forward, scratch.feed_forward);
  }
  static void backward_cross_attention(const auto& parameters, MemoryView memory, auto& tape,
                                       MemoryGradientView d_memory, auto& gradients, auto& scratch) {
    Memory& d_value = scratch.cross_attention.d_value;
    CrossAttention::backward(
        parameters.cross_attention, scratch.normalised, memory, memory, tape.cross_attention,
        Branches::template backward<1>(tape.cross_sum, tape.dropout, scratch.branch), scratch.normalised,
        d_memory, d_value, gradients.cross_attention, scratch.cross_attention.scratch);
    kernels::add_to(Memory::size, d_value.data(), d_memory.data);
  }
  static void backward_self_attention(const auto& parameters, InputView x, auto& tape,
                                      OutputGradientView d_branch, auto& gradients, auto& scratch) {
    if constexpr (kReadsNormalised<decltype(gradients)>) {
      Norm::recompute(parameters.norm1, x, tape.norm1, scratch.normalised);
    }
    SelfAttention::backward(parameters.self_attention, scratch.normalised, tape.self_attention, d_branch,
                            scratch.normalised, gradients.self_attention, scratch.self_attention);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
