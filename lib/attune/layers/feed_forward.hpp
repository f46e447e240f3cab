// The feed-forward network of a transformer, per token: two linear layers with an activation in between
// (Vaswani et al., "Attention Is All You Need", 2017, section 3.3), or with a gate (Shazeer, "GLU Variants
// Improve Transformer", 2020).
//
//   FeedForward:       h = x·W₁ + b₁,   a = f(h),   y = a·W₂ + b₂
//   GatedFeedForward:  g = x·W_gate + b_gate,   u = x·W_up + b_up,   a = f(g) ∘ u,   y = a·W_down + b_down
//
//   dW₂ += aᵀ·dy,   da = dy·W₂ᵀ,   dh = da ∘ f′(h),   dW₁ += xᵀ·dh,   dx = dh·W₁ᵀ
//   du = da ∘ f(g),   dg = da ∘ u ∘ f′(g),   dx = dg·W_gateᵀ + du·W_upᵀ
//
// In training, dropout may follow a, as in PyTorch's transformer layers.
#pragma once

#include <attune/kernels/ops/activation.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/linear.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/roles.hpp>

namespace ATTUNE_NAMESPACE {

/// Sizes and options of either network.
struct FeedForwardShape {
  int rows;     // tokens
  int d_model;  // features of a token, in input and output
  int d_ff;     // features of a token between the two layers
  Activation activation = Activation::kRelu;
  bool bias = true;    // of all linear layers
  double dropout = 0;  // probability, in training, after the activation
};

namespace detail {

// The two networks differ in the projections from x to a.

template <class InLinear, class OutLinear, Activation activation>
struct OneProjection {
  using Scalar = typename InLinear::Scalar;
  using Hidden = typename InLinear::Output;

  /// W₁, b₁, W₂, b₂.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] SetOfMember<InLinear, Role::kFeedForwardIn, Matrix, Vector> linear1;
    [[no_unique_address]] SetOfMember<OutLinear, Role::kFeedForwardOut, Matrix, Vector> linear2;
    ATTUNE_FIELDS(Set(linear1), Set(linear2))
  };
  static auto& out(auto& set) { return set.linear2; }
  template <class Gradients>
  static constexpr bool kReadsInput = InLinear::template kReadsInput<decltype(Gradients::linear1)>;

  template <template <class, int, int> class Matrix>
  struct StoredIn {
    Matrix<Scalar, Hidden::rows, Hidden::cols> hidden;

    static void visit(const auto& visitor, const auto& context, auto&... kept) {
      visitor.rows(context, kept.hidden...);
    }

    /// Memory for a in place of the projection, in inference.
    Hidden& in_place() { return hidden; }
    void project(const auto& parameters, ConstView<typename InLinear::Input> x, const auto& context) {
      InLinear::forward(parameters.linear1, x, hidden, context);
    }
    void activate(Hidden& a, int first, int count) const {
      kernels::activate<activation>(count, hidden.data() + first, a.data() + first);
    }
    /// Recomputes a, together with f′(h) in place of h if they share work.
    void reactivate(Hidden& a, int first, int count) {
      if constexpr (kernels::shares_evaluation(activation)) {
        kernels::activate_with_slopes<activation>(count, hidden.data() + first, a.data() + first);
      } else {
        activate(a, first, count);
      }
    }
    /// Overwrites h with dh.
    template <bool kReactivated>
    void activate_backward(const Hidden& da, int first, int count) {
      if constexpr (kReactivated && kernels::shares_evaluation(activation)) {
        kernels::multiply_slopes(count, da.data() + first, hidden.data() + first);
      } else {
        kernels::activate_backward<activation>(count, hidden.data() + first, da.data() + first,
                                               hidden.data() + first);
      }
    }
    /// Tokens with dy zero have no influence, even if they hold NaN.
    void clear(const auto& dy) { kernels::clear_zero_rows(dy, view(hidden)); }
    void backward_parameters(ConstView<typename InLinear::Input> x, auto& gradients,
                             const auto& context) const {
      InLinear::backward_parameters(x, hidden, gradients.linear1, context);
    }
    void backward_input(const auto& parameters, auto dx, const auto& context) const {
      InLinear::backward_input(parameters.linear1, hidden, dx, kernels::Assign{}, context);
    }
  };
};

template <class InLinear, class OutLinear, Activation activation>
struct GatedProjections {
  using Scalar = typename InLinear::Scalar;
  using Hidden = typename InLinear::Output;

  /// W_gate, b_gate, W_up, b_up, W_down, b_down.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] SetOfMember<InLinear, Role::kGate, Matrix, Vector> gate;
    [[no_unique_address]] SetOfMember<InLinear, Role::kFeedForwardIn, Matrix, Vector> up;
    [[no_unique_address]] SetOfMember<OutLinear, Role::kFeedForwardOut, Matrix, Vector> down;
    ATTUNE_FIELDS(Set(gate), Set(up), Set(down))
  };
  static auto& out(auto& set) { return set.down; }
  template <class Gradients>
  static constexpr bool kReadsInput = InLinear::template kReadsInput<decltype(Gradients::gate)> ||
                                      InLinear::template kReadsInput<decltype(Gradients::up)>;

  template <template <class, int, int> class Matrix>
  struct StoredIn {
    Matrix<Scalar, Hidden::rows, Hidden::cols> gate;
    Matrix<Scalar, Hidden::rows, Hidden::cols> up;

    static void visit(const auto& visitor, const auto& context, auto&... kept) {
      visitor.rows(context, kept.gate...);
      visitor.rows(context, kept.up...);
    }

    Hidden& in_place() { return gate; }
    void project(const auto& parameters, ConstView<typename InLinear::Input> x, const auto& context) {
      InLinear::forward(parameters.gate, x, gate, context);
      InLinear::forward(parameters.up, x, up, context);
    }
    void activate(Hidden& a, int first, int count) const {
      kernels::gate<activation>(count, gate.data() + first, up.data() + first, a.data() + first);
    }
    void reactivate(Hidden& a, int first, int count) const { activate(a, first, count); }
    /// Overwrites g with dg and u with du.
    template <bool>
    void activate_backward(const Hidden& da, int first, int count) {
      kernels::gate_backward<activation>(count, da.data() + first, gate.data() + first, up.data() + first);
    }
    void clear(const auto& dy) {
      kernels::clear_zero_rows(dy, view(gate));
      kernels::clear_zero_rows(dy, view(up));
    }
    void backward_parameters(ConstView<typename InLinear::Input> x, auto& gradients,
                             const auto& context) const {
      InLinear::backward_parameters(x, gate, gradients.gate, context);
      InLinear::backward_parameters(x, up, gradients.up, context);
    }
    void backward_input(const auto& parameters, auto dx, const auto& context) const {
      InLinear::backward_input(parameters.gate, gate, dx, kernels::Assign{}, context);
      InLinear::backward_input(parameters.up, up, dx, kernels::Accumulate{}, context);
    }
  };
};

// y = a·W + b, with a from projections of x.
template <FeedForwardShape network_shape, template <class, class, Activation> class ProjectionsOf,
          class ScalarType>
struct FeedForwardNetwork {
  static constexpr FeedForwardShape shape = [] {
    static_assert(
        Holds<(network_shape.rows > 0 && network_shape.d_model > 0 && network_shape.d_ff > 0)>,
        "attune::FeedForward, GatedFeedForward: rows, d_model and d_ff must be positive; set all three "
        "in FeedForwardShape");
    return at_least_one(network_shape, &FeedForwardShape::rows, &FeedForwardShape::d_model,
                        &FeedForwardShape::d_ff);
  }();
  using Scalar = ScalarType;
  using InLinear = Linear<LinearShape{shape.rows, shape.d_model, shape.d_ff, shape.bias}, Scalar>;
  using OutLinear = Linear<LinearShape{shape.rows, shape.d_ff, shape.d_model, shape.bias}, Scalar>;
  using Projections = ProjectionsOf<InLinear, OutLinear, shape.activation>;
  static constexpr std::uint32_t kFingerprint = fingerprint("FeedForward", shape.activation, shape.dropout);
  using HiddenDropout = Dropout<DropoutShape{shape.rows, shape.d_ff, shape.dropout}, Scalar>;
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  using Hidden = typename InLinear::Output;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = typename Projections::template ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities =
      detail::with(detail::kInPlaceByToken, &Abilities::lanes, OutLinear::kAbilities.lanes,
                   &Abilities::additions, OutLinear::kAbilities.additions, &Abilities::recomputes_tape, true);
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = Projections::template kReadsInput<Gradients>;

  using Stored = typename Projections::template StoredIn<Tensor>;
  /// The projections. Backward recomputes a, and stores the gradients of the projections in the same memory.
  /// Matrix is their storage (layers/packed_rows.hpp).
  template <template <class, int, int> class Matrix>
  struct TapeWith {
    typename Projections::template StoredIn<Matrix> kept;
    [[no_unique_address]] typename HiddenDropout::Tape dropout;

    /// Visits the members of some tapes.
    static void visit(const auto& visitor, const auto& context, auto&... tapes) {
      Stored::visit(visitor, context, tapes.kept...);
      visitor.member(context, tapes.dropout...);
    }

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires HiddenDropout::kDrops {
      visitor(dropout);
    }
  };
  using Tape = TapeWith<Tensor>;
  /// The same for any gradients.
  template <class, template <class, int, int> class Matrix>
  using TapeIn = TapeWith<Matrix>;
  /// First a, then da.
  struct Scratch {
    Hidden activated;
  };
  struct InferenceScratch {
    Stored kept;
  };

  /// y[rows, d_model] of x[rows, d_model]. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    Hidden& activated = scratch.kept.in_place();
    scratch.kept.project(parameters, x, context);
    activate(scratch.kept, activated, context);
    OutLinear::forward(Projections::out(parameters), activated, y, context);
  }
  /// The same with dropout; the tape keeps the values that backward needs besides x. `y` may be `x` only if
  /// backward will not be called.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape& tape, Scratch& scratch,
                      const Call& context = {}) {
    recompute_tape(parameters, x, tape, scratch, context);
    activate(tape.kept, scratch.activated, context);
    HiddenDropout::apply(scratch.activated, tape.dropout, scratch.activated, context);
    OutLinear::forward(Projections::out(parameters), scratch.activated, y, context);
  }
  /// Fills the tape as forward does, without y.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void recompute_tape(const Set& parameters, ConstView<Input> x, Tape& tape, Scratch&,
                             const Call& context = {}) {
    tape.kept.project(parameters, x, context);
  }

  /// Overwrites dx[rows, d_model], from dy[rows, d_model]; adds to the gradients; uses up the tape. `dx` may
  /// be `dy`. It may also be `x`, but not with UpdateInBackward. With a mask, a token with dy zero gets dx
  /// zero and adds nothing, whatever it holds.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> x, Tape& tape, ConstView<Output> dy, Dx&& dx,
                       Gradients& gradients, Scratch& scratch, const Call& context = {}) {
    backward_from(
        parameters, [&]() ATTUNE_INLINE_LAMBDA { return x; }, tape, dy, dx, gradients, scratch, context);
  }
  /// The same, with x from input(). Calls `input()` once scratch is reusable.
  template <class Set, class Later, class Dx, class Gradients, AnyContext Call>
  static void backward_from(const Set& parameters, const Later& input, Tape& tape, ConstView<Output> dy,
                            Dx&& dx, Gradients& gradients, Scratch& scratch, const Call& context) {
    auto& out_gradients = Projections::out(gradients);
    const auto& dense = context.unmasked().in_any_order();  // rows with dy zero are cleared or left out
    if constexpr (Call::kSkipsZeros) dense.stage([&]() ATTUNE_INLINE_LAMBDA { tape.kept.clear(dy); });
    using OutGradients = std::remove_cvref_t<decltype(out_gradients)>;
    constexpr bool kReactivates = ReadsInput<OutLinear, OutGradients>;
    if constexpr (kReactivates) {
      dense.template token_elements<Hidden::rows, Hidden::cols, kWorkOfActivation>(
          [&](int first, int count)
              ATTUNE_INLINE_LAMBDA { tape.kept.reactivate(scratch.activated, first, count); });
      HiddenDropout::apply(scratch.activated, tape.dropout, scratch.activated, dense);
    }
    OutLinear::backward_over_input(Projections::out(parameters), scratch.activated, dy, out_gradients, dense);
    HiddenDropout::backward(tape.dropout, scratch.activated, scratch.activated, dense);
    dense.template token_elements<Hidden::rows, Hidden::cols, kWorkOfActivation>(
        [&](int first, int count) ATTUNE_INLINE_LAMBDA {
          tape.kept.template activate_backward<kReactivates>(scratch.activated, first, count);
        });
    const ConstView<Input> x = input();
    const auto& zero_skipping_context = context.skipping_zeros(context.first(x));
    in_order_of_updates<UpdatesInSet<Gradients>>(
        [&]() ATTUNE_INLINE_LAMBDA { tape.kept.backward_parameters(x, gradients, zero_skipping_context); },
        [&]() ATTUNE_INLINE_LAMBDA {
          if_wanted<Input>(dx, [&](View<Input> to)
                                   ATTUNE_INLINE_LAMBDA { tape.kept.backward_input(parameters, to, dense); });
        });
  }

 private:
  static constexpr int kWorkOfActivation = shape.activation == Activation::kRelu ? 3 : 24;

  static void activate(const auto& kept, Hidden& activated, const auto& context) {
    context.template token_elements<Hidden::rows, Hidden::cols, kWorkOfActivation>(
        [&](int first, int count) ATTUNE_INLINE_LAMBDA { kept.activate(activated, first, count); });
  }
};

}  // namespace detail

/// y = f(x·W₁ + b₁)·W₂ + b₂; x and y are [rows, d_model], with d_ff hidden features.
template <FeedForwardShape shape, class Scalar = float>
struct FeedForward : detail::FeedForwardNetwork<shape, detail::OneProjection, Scalar> {
  template <class Other>
  using WithScalar = FeedForward<shape, Other>;
  using SteppedAs = FeedForward;
  template <int tokens, CacheShape>
  using Stream = FeedForward<detail::with(shape, &FeedForwardShape::rows, tokens), Scalar>;
};

/// y = (f(x·W_gate + b_gate) ∘ (x·W_up + b_up))·W_down + b_down; x and y are [rows, d_model], with d_ff
/// hidden features.
template <FeedForwardShape shape, class Scalar = float>
struct GatedFeedForward : detail::FeedForwardNetwork<shape, detail::GatedProjections, Scalar> {
  static constexpr std::uint32_t kFingerprint =
      fingerprint("GatedFeedForward", shape.activation, shape.dropout);
  template <class Other>
  using WithScalar = GatedFeedForward<shape, Other>;
  using SteppedAs = GatedFeedForward;
  template <int tokens, CacheShape>
  using Stream = GatedFeedForward<detail::with(shape, &FeedForwardShape::rows, tokens), Scalar>;
};

namespace detail {

// A struct, as GCC 12 crashes on an alias whose shape depends on a template parameter.
template <FeedForwardShape shape, class Scalar>
struct GatedBySilu {
  using type = GatedFeedForward<with(shape, &FeedForwardShape::activation, Activation::kSilu), Scalar>;
};

}  // namespace detail

/// Gated by SiLU; ignores the shape's activation.
template <FeedForwardShape shape, class Scalar = float>
using SwiGlu = typename detail::GatedBySilu<shape, Scalar>::type;

}  // namespace ATTUNE_NAMESPACE
