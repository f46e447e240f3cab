// Pools a sequence to one vector: the mean, the maximum, the first or the last of its tokens, without
// padding.
//
//   mean:   y_j = Σ_(i valid) x_ij / n            dx_ij = dy_j / n for valid i
//   max:    y_j = max_(i valid) x_ij              dx_ij = dy_j for the first valid i with x_ij = y_j
//   first:  y = x_i of the first valid i          dx_i = dy
//   last:   y = x_i of the last valid i           dx_i = dy
//
// A sequence without a valid token becomes zeros and has no gradient.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE {

/// The pooled value of each feature.
enum class PoolingKind {
  kMean = 0,   // the mean of the tokens
  kMax = 1,    // the maximum of the tokens
  kFirst = 2,  // the first token
  kLast = 3    // the last token
};

/// Dimensions and kind of `Pooling`.
struct PoolingShape {
  int seq_len;                            // tokens
  int d_model;                            // features of a token, and of the result
  PoolingKind kind = PoolingKind::kMean;  // the pooled value of each feature
};

namespace detail {

/// The maximum of some values; NaN if one is NaN, zero without a value.
template <class P>
struct RunningMaximum {
  P largest = kernels::broadcast<P>(kernels::ScalarOf<P>(0));
  bool found = false;

  ATTUNE_INLINE void add(const P& value) {
    using Real = kernels::Real<kernels::ScalarOf<P>>;
    const P infinity = kernels::broadcast<P>(std::numeric_limits<Real>::infinity());
    const P larger = found ? kernels::select_less(largest, value, value, largest) : value;
    largest = kernels::select_less(value, infinity, larger, kernels::add(value, larger));  // NaN stays
    found = true;
  }
};
/// The gradient of a maximum, which the first of the largest values gets.
template <class P>
struct GradientOfFirst {
  P largest;
  P left;  // the gradient not yet given to a value

  ATTUNE_INLINE P take(const P& value) {
    const P zero = kernels::broadcast<P>(kernels::ScalarOf<P>(0));
    const P given = kernels::select_less(value, largest, zero, left);
    left = kernels::select_less(value, largest, left, zero);
    return given;
  }
};

}  // namespace detail

/// Pools x[seq_len, d_model] to y[1, d_model]. Reads only padding from a mask: KeyPaddingMask<seq_len>, alone
/// or combined by `&&`, or your own mask with keeps_key (execution/attention_mask.hpp).
template <PoolingShape shape, class ScalarType = float>
struct Pooling {
  static_assert(detail::Holds<(shape.seq_len > 0 && shape.d_model > 0)>,
                "attune::Pooling: seq_len and d_model must be positive; set both in PoolingShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Pooling<shape, Other>;
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(detail::needs_whole_sequence<tokens>());
  };
  static constexpr std::uint32_t kFingerprint = fingerprint("Pooling", shape.kind);
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, 1, shape.d_model>;
  using Parameters = NoParameters;
  template <class Gradients>
  static constexpr bool kReadsInput = shape.kind == PoolingKind::kMax;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,
                                        .takes_context = true,
                                        .takes_length = true,
                                        .lanes = Lanes::kAll};  // reads no padding
  /// The valid tokens, in a type without a constructor: a static model needs no initialization before main.
  /// Backward searches the position of a maximum again.
  struct Tape {
    bool padding[std::size_t{shape.seq_len}];
    [[nodiscard]] constexpr bool valid(int token) const { return !padding[token]; }
  };
  struct Scratch {};
  struct InferenceScratch {};

  /// y[1, d_model] of x[seq_len, d_model]. `y` may be the first row of `x`.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.stage([&] {
      Tape tokens;
      keep(context.mask(), tokens);
      pool(x, y, tokens);
    });
  }
  /// The same; the tape keeps the padding. For the maximum, backward also needs x.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    context.stage([&] {
      keep(context.mask(), tape);
      pool(x, y, tape);
    });
  }

  /// Overwrites dx[seq_len, d_model], from dy[1, d_model]; zero for padding. `dx` may be `x`.
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input> x, const Tape& tape, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Call& context = {}) {
    if constexpr (kWanted<Dx>) context.stage([&] { spread(x, tape, dy, detail::sink<Input>(dx)); });
  }

 private:
  static constexpr bool kChooses = shape.kind == PoolingKind::kFirst || shape.kind == PoolingKind::kLast;

  static void spread([[maybe_unused]] ConstView<Input> x, const Tape& tape, ConstView<Output> dy,
                     View<Input> dx) {
    const int count = valid_count(tape), chosen = chosen_token(tape);
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      const P zero = kernels::broadcast<P>(Scalar(0));
      detail::GradientOfFirst<P> gradients{zero, kernels::load<P>(dy.data + j)};
      if constexpr (shape.kind == PoolingKind::kMean) {
        gradients.left = kernels::divide(gradients.left, kernels::broadcast<P>(divisor(count)));
      } else if constexpr (shape.kind == PoolingKind::kMax) {
        gradients.largest = column_largest<P>(x, j, tape);
      }
      for (int i = 0; i < shape.seq_len; ++i) {
        P gradient = zero;
        if (kChooses ? i == chosen : tape.valid(i)) {
          gradient = gradients.left;
          if constexpr (shape.kind == PoolingKind::kMax)
            gradient = gradients.take(kernels::load<P>(x.data + i * shape.d_model + j));
        }
        kernels::store(dx.data + i * shape.d_model + j, gradient);
      }
    });
  }

  // Stores the padding of any mask.
  static void keep(const auto& mask, Tape& tape) {
    for (int i = 0; i < shape.seq_len; ++i) tape.padding[i] = !detail::keeps_key<shape.seq_len>(mask, i);
  }

  static int valid_count(const Tape& tokens) {
    int count = 0;
    for (int i = 0; i < shape.seq_len; ++i) count += tokens.valid(i);
    return count;
  }

  // The token that is the result, if one is; -1 without a valid one.
  static int chosen_token(const Tape& tokens) {
    int chosen = -1;
    for (int i = 0; i < shape.seq_len; ++i) {
      if (tokens.valid(i) && (chosen < 0 || shape.kind == PoolingKind::kLast)) chosen = i;
    }
    return chosen;
  }

  static Scalar divisor(int count) {
    return Scalar(static_cast<kernels::Real<Scalar>>(count > 0 ? count : 1));
  }

  // The maximum of some columns over valid tokens. NaN if an entry is NaN; zeros without a valid token.
  template <class P>
  ATTUNE_INLINE static P column_largest(ConstView<Input> x, int j, const Tape& tokens) {
    detail::RunningMaximum<P> maximum;
    for (int i = 0; i < shape.seq_len; ++i) {
      if (tokens.valid(i)) maximum.add(kernels::load<P>(x.data + i * shape.d_model + j));
    }
    return maximum.largest;
  }

  [[gnu::noinline]] static void pool(ConstView<Input> x, View<Output> y, const Tape& tokens) {
    const int count = valid_count(tokens), chosen = chosen_token(tokens);
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      if constexpr (shape.kind == PoolingKind::kMax) {
        kernels::store(y.data + j, column_largest<P>(x, j, tokens));
      } else {
        P sum = kernels::broadcast<P>(Scalar(0));
        for (int i = 0; i < shape.seq_len; ++i) {
          if (kChooses ? i != chosen : !tokens.valid(i)) continue;
          sum = kernels::add(sum, kernels::load<P>(x.data + i * shape.d_model + j));
        }
        if constexpr (shape.kind == PoolingKind::kMean) {
          sum = kernels::divide(sum, kernels::broadcast<P>(divisor(count)));
        }
        kernels::store(y.data + j, sum);
      }
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
