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

/// Pools packets of features at x, of tokens of x[…, d_model]. for_each(body) calls body(token) for the
/// tokens that count. `count` divides a mean.
template <bool kMaximum, int d_model>
struct TokenPooling {
  template <class Scalar>
  ATTUNE_INLINE static void pool(const Scalar* x, Scalar* y, const Scalar& count, const auto& for_each) {
    kernels::for_each_packet<Scalar>(d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      kernels::store(y + j, pool<P>(x + j, count, for_each));
    });
  }
  template <class P, class Scalar>
  ATTUNE_INLINE static P pool(const Scalar* x, const Scalar& count, const auto& for_each) {
    RunningMaximum<P> maximum;
    P sum = kernels::broadcast<P>(Scalar(0));
    for_each([&](int token) ATTUNE_INLINE_LAMBDA {
      const P value = kernels::load<P>(x + token * d_model);
      if (kMaximum) {
        maximum.add(value);
      } else {
        sum = kernels::add(sum, value);
      }
    });
    return kMaximum ? maximum.largest : kernels::divide(sum, kernels::broadcast<P>(count));
  }
  /// Calls write(token, dx) with each token's part of the gradient dy.
  template <class P, class Scalar>
  ATTUNE_INLINE static void spread(const Scalar* x, const P& dy, const Scalar& count, const auto& for_each,
                                   const auto& write) {
    GradientOfFirst<P> gradients{kernels::broadcast<P>(Scalar(0)), dy};
    if constexpr (kMaximum) gradients.largest = pool<P>(x, count, for_each);
    const P mean = kernels::divide(dy, kernels::broadcast<P>(count));
    for_each([&](int token) ATTUNE_INLINE_LAMBDA {
      write(token, kMaximum ? gradients.take(kernels::load<P>(x + token * d_model)) : mean);
    });
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
  using Stream = detail::NeedsWholeSequence<tokens>;
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
  /// The tokens that count: the valid ones, or the first or last of these. In a type without a constructor: a
  /// static model needs no initialization before main. Backward searches the position of a maximum again.
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
    detail::if_wanted<Input>(dx, [&](View<Input> to) { context.stage([&] { spread(x, tape, dy, to); }); });
  }

 private:
  using Features = detail::TokenPooling<shape.kind == PoolingKind::kMax, shape.d_model>;

  // Stores the tokens that count with any mask.
  static void keep(const auto& mask, Tape& tape) {
    int chosen = -1;
    for (int i = 0; i < shape.seq_len; ++i) {
      tape.padding[i] = !detail::keeps_key<shape.seq_len>(mask, i);
      if (tape.valid(i) && (chosen < 0 || shape.kind == PoolingKind::kLast)) chosen = i;
    }
    if (shape.kind == PoolingKind::kMean || shape.kind == PoolingKind::kMax) return;
    for (int i = 0; i < shape.seq_len; ++i) tape.padding[i] = i != chosen;
  }
  ATTUNE_INLINE static auto each_of(const Tape& tape) {
    return [&tape](const auto& body) ATTUNE_INLINE_LAMBDA {
      for (int i = 0; i < shape.seq_len; ++i) {
        if (tape.valid(i)) body(i);
      }
    };
  }
  // Of a mean, at least 1.
  static Scalar divisor(const Tape& tape) {
    int count = 0;
    each_of(tape)([&](int) { ++count; });
    return Scalar(static_cast<kernels::Real<Scalar>>(detail::at_least_one(count)));
  }

  [[gnu::noinline]] static void pool(ConstView<Input> x, View<Output> y, const Tape& tape) {
    Features::pool(x.data, y.data, divisor(tape), each_of(tape));
  }
  static void spread(ConstView<Input> x, const Tape& tape, ConstView<Output> dy, View<Input> dx) {
    const Scalar count = divisor(tape);
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      const auto write = [&](int token, const P& gradient) ATTUNE_INLINE_LAMBDA {
        kernels::store(dx.data + token * shape.d_model + j, gradient);
      };
      Features::template spread<P>(x.data + j, kernels::load<P>(dy.data + j), count, each_of(tape), write);
      for (int i = 0; i < shape.seq_len; ++i) {
        if (!tape.valid(i)) write(i, kernels::broadcast<P>(Scalar(0)));
      }
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
