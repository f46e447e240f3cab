// One vector for a sequence: the mean, the largest or the first of its tokens, padding left out.
//
//   mean:   y_j = Σ_(i valid) x_ij / n            dx_ij = dy_j / n for valid i
//   max:    y_j = max_(i valid) x_ij              dx_ij = dy_j for the first valid i with x_ij = y_j
//   first:  y = x_i of the first valid i          dx_i = dy
//
// A sequence without a valid token becomes zeros and has no gradient.
#pragma once

#include <attune/attention/mask.hpp>
#include <attune/core/parameters.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

enum class PoolingKind { kMean, kMax, kFirst };

struct PoolingShape {
  int seq_len;  // tokens
  int d_model;  // features of a token, and of the result
  PoolingKind kind = PoolingKind::kMean;
};

/// Pools x[seq_len, d_model] to y[1, d_model]. Masks: NoMask, KeyPaddingMask<seq_len>, or what attention got
/// with such ones in it by `&&`, whose other parts say nothing about padding.
template <PoolingShape shape, class ScalarType = float>
struct Pooling {
  static_assert(shape.seq_len > 0 && shape.d_model > 0,
                "attune::Pooling: seq_len and d_model must be positive; set both in PoolingShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = Pooling<shape, Other>;
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, 1, shape.d_model>;
  using Parameters = NoParameters;
  template <class Gradients>
  static constexpr bool kReadsInput = shape.kind == PoolingKind::kMax;
  static constexpr bool kRunsInLockstep = true;
  /// Which tokens were valid, in a type without a constructor: a static model needs none before main. Where
  /// the largest stands is found once more in backward.
  struct Tape {
    bool padding[shape.seq_len];
    [[nodiscard]] constexpr bool valid(int token) const { return !padding[token]; }
  };
  struct Scratch {};
  struct InferenceScratch {};

  using InputView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;
  using InputGradientView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputView = MatrixView<Scalar, 1, shape.d_model>;
  using OutputGradientView = MatrixView<const Scalar, 1, shape.d_model>;

  /// y[1, d_model] of x[seq_len, d_model]. `y` may be the first row of `x`. Of a mask, also of one that is
  /// composed, key padding is what counts.
  template <AttentionMask AnyMask = NoMask>
  static void forward(const Parameters&, InputView x, OutputView y, InferenceScratch&,
                      const AnyMask& mask = {}) {
    pool(x, y, padding_of(mask));
  }
  /// The same, and the tape keeps the padding. For the largest, backward needs x too.
  template <AttentionMask AnyMask = NoMask>
  static void forward(const Parameters&, InputView x, OutputView y, Tape& tape, Scratch&,
                      const AnyMask& mask = {}) {
    const Mask padding = padding_of(mask);
    for (int i = 0; i < shape.seq_len; ++i) tape.padding[i] = !padding.valid(i);
    pool(x, y, padding);
  }

  /// dx[seq_len, d_model] from dy[1, d_model], overwritten; zero for padding. `dx` may be `x`.
  static void backward(const Parameters&, InputView x, const Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters&, Scratch&) {
    const int count = valid_count(tape);
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      const P zero = kernels::broadcast<P>(Scalar(0));
      P left = kernels::load<P>(dy.data + j);  // what no token has received yet
      P largest = zero;
      if constexpr (shape.kind == PoolingKind::kMean) {
        left = kernels::divide(left, kernels::broadcast<P>(divisor(count)));
      } else if constexpr (shape.kind == PoolingKind::kMax) {
        largest = column_largest<P>(x, j, tape);
      }
      for (int i = 0; i < shape.seq_len; ++i) {
        P gradient = zero;
        if (tape.valid(i)) {
          gradient = left;
          if constexpr (shape.kind == PoolingKind::kMax) {
            const P value = kernels::load<P>(x.data + i * shape.d_model + j);
            gradient = kernels::select_less(value, largest, zero, left);
            left = kernels::select_less(value, largest, left, zero);
          } else if constexpr (shape.kind == PoolingKind::kFirst) {
            left = zero;
          }
        }
        kernels::store(dx.data + i * shape.d_model + j, gradient);
      }
    });
  }
  /// The same where nobody asks for dx: nothing to do.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView, Parameters&, Scratch&) {
  }

 private:
  using Mask = KeyPaddingMask<shape.seq_len>;

  // What any mask says about padding.
  static bool valid(const auto&, int) { return true; }
  template <int tokens>
  static bool valid(const KeyPaddingMask<tokens>& mask, int token) {
    static_assert(tokens == shape.seq_len,
                  "attune::Pooling: the KeyPaddingMask is for another number of tokens");
    return mask.valid(token);
  }
  template <class First, class Second>
  static bool valid(const BothMasks<First, Second>& masks, int token) {
    return valid(masks.first, token) && valid(masks.second, token);
  }
  static Mask padding_of(const auto& mask) {
    bool tokens[shape.seq_len];
    for (int i = 0; i < shape.seq_len; ++i) tokens[i] = valid(mask, i);
    Mask padding;
    padding.set_valid(tokens);
    return padding;
  }

  // `tokens` is a mask or a tape.
  template <class Tokens>
  static int valid_count(const Tokens& tokens) {
    int count = 0;
    for (int i = 0; i < shape.seq_len; ++i) count += tokens.valid(i);
    return count;
  }

  static Scalar divisor(int count) {
    return Scalar(static_cast<kernels::Real<Scalar>>(count > 0 ? count : 1));
  }

  // The largest valid entry of some columns; zeros where no token is valid.
  template <class P, class Tokens>
  ATTUNE_INLINE static P column_largest(InputView x, int j, const Tokens& tokens) {
    P largest = kernels::broadcast<P>(Scalar(0));
    bool found = false;
    for (int i = 0; i < shape.seq_len; ++i) {
      if (!tokens.valid(i)) continue;
      const P value = kernels::load<P>(x.data + i * shape.d_model + j);
      largest = found ? kernels::select_less(largest, value, value, largest) : value;
      found = true;
    }
    return largest;
  }

  [[gnu::noinline]] static void pool(InputView x, OutputView y, const Mask& mask) {
    const int count = valid_count(mask);
    kernels::for_each_packet<Scalar>(shape.d_model, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      if constexpr (shape.kind == PoolingKind::kMax) {
        kernels::store(y.data + j, column_largest<P>(x, j, mask));
      } else {
        P sum = kernels::broadcast<P>(Scalar(0));
        for (int i = 0; i < shape.seq_len; ++i) {
          if (!mask.valid(i)) continue;
          sum = kernels::add(sum, kernels::load<P>(x.data + i * shape.d_model + j));
          if constexpr (shape.kind == PoolingKind::kFirst) break;
        }
        if constexpr (shape.kind == PoolingKind::kMean) {
          sum = kernels::divide(sum, kernels::broadcast<P>(divisor(count)));
        }
        kernels::store(y.data + j, sum);
      }
    });
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
