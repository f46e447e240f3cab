// Softmax over rows and its logarithm, forward and backward.
//
//   softmax:      p_j = e^(x_j) / Σ_k e^(x_k)           dx = p ∘ (dp − Σ_k p_k dp_k)
//   log-softmax:  y_j = x_j − ln Σ_k e^(x_k)            dx = dy − e^y · Σ_k dy_k
//
// Subtracts the row's maximum first, so any finite input is safe.
#pragma once

#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/log_softmax.hpp>
#include <attune/kernels/ops/softmax.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Functions of a row of kCols scalars, one struct per layer.
struct SoftmaxRow {
  template <int kCols, class Scalar>
  static void forward(const Scalar* x, Scalar* y) {
    if (x != y) {
      for (int j = 0; j < kCols; ++j) y[j] = x[j];
    }
    kernels::softmax_rows<Scalar, 1, kCols>(y);
  }
  template <int kCols, class Scalar>
  static void backward(const Scalar* y, const Scalar* dy, Scalar* dx) {
    kernels::softmax_row_backward<Scalar, kCols>(y, dy, dx, Scalar(1));
  }
};
struct LogSoftmaxRow {
  template <int kCols, class Scalar>
  static void forward(const Scalar* x, Scalar* y) {
    kernels::log_softmax_row<kCols>(x, y);
  }
  template <int kCols, class Scalar>
  static void backward(const Scalar* y, const Scalar* dy, Scalar* dx) {
    kernels::log_softmax_row_backward<kCols>(y, dy, dx);
  }
};

template <class Row, int kRows, int kCols, class ScalarType>
struct RowByRow : InputUnread {
  static_assert(Holds<(kRows > 0 && kCols > 0)>,
                "attune::Softmax, LogSoftmax: rows and cols must be positive");

  using Scalar = ScalarType;
  using Input = Tensor<Scalar, kRows, kCols>;
  using Output = Input;
  using Parameters = NoParameters;
  static constexpr Abilities kAbilities =
      detail::with(detail::kInPlaceByToken, &Abilities::lanes, Lanes::kNone);
  /// The output y; backward needs nothing else.
  struct Tape {
    Output y;
  };
  struct Scratch {};
  struct InferenceScratch {};

  /// y[rows, cols] of x[rows, cols]. `y` may be `x`.
  template <AnyContext Call = Context<>>
  static void forward(ConstView<Input> x, View<Output> y, const Call& context = {}) {
    for (int i = 0; i < context.template count<kRows>(); ++i) {
      Row::template forward<kCols, Scalar>(x.data + i * kCols, y.data + i * kCols);
    }
  }
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA { forward(x, y, context); });
  }
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      forward(x, y, context);
      for (int i = 0; i < context.template count<kRows>() * kCols; ++i) tape.y.values[i] = y.data[i];
    });
  }

  /// dx[rows, cols] from forward's output y, and dy. `dx` may be `dy` or `y`. With a mask, a row of dx is
  /// zero if the row of dy is zero, whatever y holds.
  template <AnyContext Call = Context<>>
  static void backward(ConstView<Output> y, ConstView<Output> dy, View<Input> dx, const Call& context = {}) {
    for (int i = 0; i < context.template count<kRows>(); ++i) {
      const Scalar* of_row = dy.data + i * kCols;
      if (Call::kSkipsZeros && kernels::is_zero_row(kCols, of_row)) {
        for (int j = 0; j < kCols; ++j) dx(i, j) = Scalar(0);
        continue;
      }
      Row::template backward<kCols, Scalar>(y.data + i * kCols, of_row, dx.data + i * kCols);
    }
  }
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input>, const Tape& tape, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Call& context = {}) {
    if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA {
      context.stage([&]() ATTUNE_INLINE_LAMBDA { backward(tape.y, dy, to, context); });
    });
  }
};

}  // namespace detail

/// Softmax of each row of x[kRows, kCols]. −∞ becomes 0; a row of only −∞ becomes zeros.
template <int kRows, int kCols, class Scalar = float>
struct Softmax : detail::RowByRow<detail::SoftmaxRow, kRows, kCols, Scalar> {
  template <class Other>
  using WithScalar = Softmax<kRows, kCols, Other>;
  template <int tokens, CacheShape>
  using Stream = Softmax<tokens, kCols, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Softmax");
};

/// Log-softmax of each row of x[kRows, kCols], within the range of logits. −∞ stays −∞ in a row
/// with a finite logit. A row with NaN or +∞, or of only −∞, becomes NaN, as in PyTorch.
template <int kRows, int kCols, class Scalar = float>
struct LogSoftmax : detail::RowByRow<detail::LogSoftmaxRow, kRows, kCols, Scalar> {
  template <class Other>
  using WithScalar = LogSoftmax<kRows, kCols, Other>;
  template <int tokens, CacheShape>
  using Stream = LogSoftmax<tokens, kCols, Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("LogSoftmax");
};

}  // namespace ATTUNE_NAMESPACE
