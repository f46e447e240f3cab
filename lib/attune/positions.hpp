// Where a token stands, told to attention: learned or sinusoidal vectors added to tokens (Vaswani et al.,
// "Attention Is All You Need", 2017, section 3.5), or queries and keys rotated (Su et al., "RoFormer:
// Enhanced Transformer with Rotary Position Embedding", 2021).
//
//   learned:     y = x + W,                          dx = dy,   dW += dy
//   sinusoidal:  y = x + E,                          dx = dy,   E_(t,2i) = sin(t·ω_i),  E_(t,2i+1) =
//   cos(t·ω_i) rotary:      (a, b) ↦ (a·c − b·s, a·s + b·c)     dx: the rotation back,   c = cos(t·ω_i),  s =
//   sin(t·ω_i)
//
//   ω_i = base^(−2i/d)
#pragma once

#include <attune/kernels/residual.hpp>
#include <attune/kernels/sine_table.hpp>
#include <attune/parameters.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

struct PositionShape {
  int seq_len;           // tokens; the first stands at position 0
  int d_model;           // features of a token
  double base = 10'000;  // of sinusoidal frequencies
};

namespace detail {

template <class Scalar, int rows, int cols>
void copy(const Scalar* x, Scalar* y) {
  if (x == y) return;
  for (int i = 0; i < rows * cols; ++i) y[i] = x[i];
}

struct NoParameters {
  template <class Visitor, class... Sets>
  static constexpr void visit(const Visitor&, const TensorPath*, Sets&...) {}
  template <class Initialiser, class Generator>
  void initialise(const Initialiser&, Generator&) {}
};

// y = x + W of given vectors W; backward of x is the identity.
template <PositionShape shape, class ScalarType>
struct AddedPositions {
  static_assert(
      shape.seq_len > 0 && shape.d_model > 0,
      "attune::LearnedPositions, SinusoidalPositions: seq_len and d_model must be positive; set both "
      "in PositionShape");

  using Scalar = ScalarType;
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Input;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  using InputView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;
  using InputGradientView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputView = MatrixView<Scalar, shape.seq_len, shape.d_model>;
  using OutputGradientView = MatrixView<const Scalar, shape.seq_len, shape.d_model>;

 protected:
  static void add(const Input& positions, InputView x, OutputView y) {
    copy<Scalar, shape.seq_len, shape.d_model>(x.data, y.data);
    kernels::add_to(Input::size, positions.data(), y.data);
  }
};

}  // namespace detail

/// Vectors that are trained, one a position. Nothing is taped.
template <PositionShape shape, class ScalarType = float>
struct LearnedPositions : detail::AddedPositions<shape, ScalarType> {
  using Base = detail::AddedPositions<shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = LearnedPositions<shape, Other>;
  using typename Base::InferenceScratch, typename Base::Tape, typename Base::Scratch;
  using typename Base::InputView, typename Base::InputGradientView;
  using typename Base::OutputView, typename Base::OutputGradientView;

  struct Parameters {
    Tensor<Scalar, shape.seq_len, shape.d_model> weight;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&... sets) {
      visitor(TensorPath{"weight", parent}, sets.weight...);
    }
    template <class Initialiser, class Generator>
    void initialise(const Initialiser& initialiser, Generator& rng) {
      initialiser.weight(weight, rng);
    }
  };

  /// y[seq_len, d_model] = x + W. `y` may be `x`.
  static void forward(const Parameters& parameters, InputView x, OutputView y, InferenceScratch&) {
    Base::add(parameters.weight, x, y);
  }
  static void forward(const Parameters& parameters, InputView x, OutputView y, Tape&, Scratch&) {
    Base::add(parameters.weight, x, y);
  }
  /// dx[seq_len, d_model] = dy; gradients accumulate. `dx` may be `dy`.
  static void backward(const Parameters& parameters, InputView x, const Tape& tape, OutputGradientView dy,
                       InputGradientView dx, Parameters& gradients, Scratch& scratch) {
    backward(parameters, x, tape, dy, gradients, scratch);
    detail::copy<Scalar, shape.seq_len, shape.d_model>(dy.data, dx.data);
  }
  /// The same where nobody asks for dx.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView dy,
                       Parameters& gradients, Scratch&) {
    kernels::add_to(dy.rows * dy.cols, dy.data, gradients.weight.data());
  }
};

/// Vectors of sines and cosines, in flash; no parameters. clang evaluates tables of up to about 50,000
/// entries, and larger ones with -fconstexpr-steps.
template <PositionShape shape, class ScalarType = float>
struct SinusoidalPositions : detail::AddedPositions<shape, ScalarType> {
  static_assert(shape.base > 1, "attune::SinusoidalPositions: base must be above 1");

  using Base = detail::AddedPositions<shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = SinusoidalPositions<shape, Other>;
  using Parameters = detail::NoParameters;
  using typename Base::InferenceScratch, typename Base::Tape, typename Base::Scratch;
  using typename Base::InputView, typename Base::InputGradientView;
  using typename Base::OutputView, typename Base::OutputGradientView;

  /// E[seq_len, d_model].
  static constexpr Tensor<Scalar, shape.seq_len, shape.d_model> kVectors = [] {
    constexpr int kFrequencies = (shape.d_model + 1) / 2;
    const auto table = kernels::sine_table<Scalar, shape.seq_len, kFrequencies>(shape.base, shape.d_model);
    Tensor<Scalar, shape.seq_len, shape.d_model> vectors{};
    for (int t = 0; t < shape.seq_len; ++t) {
      for (int j = 0; j < shape.d_model; ++j) {
        vectors(t, j) = j % 2 == 0 ? table.sine(t, j / 2) : table.cosine(t, j / 2);
      }
    }
    return vectors;
  }();

  /// y[seq_len, d_model] = x + E. `y` may be `x`.
  static void forward(const Parameters&, InputView x, OutputView y, InferenceScratch&) {
    Base::add(kVectors, x, y);
  }
  static void forward(const Parameters&, InputView x, OutputView y, Tape&, Scratch&) {
    Base::add(kVectors, x, y);
  }
  /// dx[seq_len, d_model] = dy. `dx` may be `dy`.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView dy, InputGradientView dx,
                       Parameters&, Scratch&) {
    detail::copy<Scalar, shape.seq_len, shape.d_model>(dy.data, dx.data);
  }
  /// The same where nobody asks for dx: nothing to do.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView, Parameters&, Scratch&) {
  }
};

/// Which features of a head are rotated together.
enum class RotaryPairs {
  kHalves,       // i and i + rotary_dim/2, as in GPT-NeoX and by default in ONNX
  kInterleaved,  // 2i and 2i + 1, as in the paper
};

struct RotaryShape {
  int seq_len;  // tokens
  int num_heads;
  int d_k;               // features of a head
  int rotary_dim = d_k;  // of them the first that are rotated; the rest passes
  RotaryPairs pairs = RotaryPairs::kHalves;
  double base = 10'000;
};

/// Rotates queries or keys [seq_len, num_heads·d_k], heads side by side as MultiHeadAttention has them: to be
/// called on both, after their projections. No parameters, no tape.
template <RotaryShape shape, class ScalarType = float>
struct RotaryPositions {
  static_assert(
      shape.seq_len > 0 && shape.num_heads > 0 && shape.d_k > 0,
      "attune::RotaryPositions: seq_len, num_heads and d_k must be positive; set all three in RotaryShape");
  static_assert(
      shape.rotary_dim > 0 && shape.rotary_dim % 2 == 0 && shape.rotary_dim <= shape.d_k,
      "attune::RotaryPositions: rotary_dim must be even and at most d_k: features are rotated in pairs");
  static_assert(shape.base > 1, "attune::RotaryPositions: base must be above 1");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = RotaryPositions<shape, Other>;
  static constexpr int kPairs = shape.rotary_dim / 2;
  using Input = Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k>;
  using Output = Input;
  using Parameters = detail::NoParameters;
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  /// cos and sin, each [seq_len, rotary_dim/2].
  using Table = kernels::SineTable<Scalar, shape.seq_len, kPairs>;

  using InputView = MatrixView<const Scalar, Input::rows, Input::cols>;
  using InputGradientView = MatrixView<Scalar, Input::rows, Input::cols>;
  using OutputView = MatrixView<Scalar, Input::rows, Input::cols>;
  using OutputGradientView = MatrixView<const Scalar, Input::rows, Input::cols>;

  /// Positions 0 … seq_len − 1, in flash; made only where it is used.
  static constexpr Table kTable =
      kernels::sine_table<Scalar, shape.seq_len, kPairs>(shape.base, shape.rotary_dim);

  /// y = x rotated, by kTable or by a table of other positions. `y` may be `x`.
  static void forward(InputView x, OutputView y) { rotate<false>(x, y, kTable); }
  static void forward(InputView x, OutputView y, const Table& table) { rotate<false>(x, y, table); }
  static void forward(const Parameters&, InputView x, OutputView y, InferenceScratch&) { forward(x, y); }
  static void forward(const Parameters&, InputView x, OutputView y, Tape&, Scratch&) { forward(x, y); }

  /// dx = dy rotated back. `dx` may be `dy`.
  static void backward(OutputGradientView dy, InputGradientView dx) { rotate<true>(dy, dx, kTable); }
  static void backward(OutputGradientView dy, InputGradientView dx, const Table& table) {
    rotate<true>(dy, dx, table);
  }
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView dy, InputGradientView dx,
                       Parameters&, Scratch&) {
    backward(dy, dx);
  }
  /// The same where nobody asks for dx: nothing to do.
  static void backward(const Parameters&, InputView, const Tape&, OutputGradientView, Parameters&, Scratch&) {
  }

 private:
  // a · b, rounded. GCC 12 at -O3 otherwise makes x86's vfmaddsub of scalar products that are added and
  // subtracted in turn, whatever -ffp-contract says.
  template <class P>
  ATTUNE_INLINE static P rounded_product(const P& a, const P& b) {
    P product = kernels::multiply(a, b);
#if defined(EIGEN_VECTORIZE_FMA) && !ATTUNE_FUSED
    if constexpr (kernels::kIsScalar<P>) asm("" : "+x"(product));
#endif
    return product;
  }
  // x·c + y·s, and x·c − y·s.
  template <class P>
  ATTUNE_INLINE static P sum_of_products(const P& x, const P& c, const P& y, const P& s) {
    if constexpr (ATTUNE_FUSED) return kernels::multiply_add(y, s, kernels::multiply(x, c));
    return kernels::add(rounded_product(x, c), rounded_product(y, s));
  }
  template <class P>
  ATTUNE_INLINE static P difference_of_products(const P& x, const P& c, const P& y, const P& s) {
    if constexpr (ATTUNE_FUSED) return kernels::subtract_product(kernels::multiply(x, c), y, s);
    return kernels::subtract(rounded_product(x, c), rounded_product(y, s));
  }

  // (a, b) by the angle of c and s, or back.
  template <bool kBack, class P>
  ATTUNE_INLINE static void rotate_pair(P& a, P& b, const P& c, const P& s) {
    const P first = a, second = b;
    if constexpr (kBack) {
      a = sum_of_products(first, c, second, s);
      b = difference_of_products(second, c, first, s);
    } else {
      a = difference_of_products(first, c, second, s);
      b = sum_of_products(second, c, first, s);
    }
  }

  template <bool kBack>
  [[gnu::noinline]] static void rotate(InputView x, OutputView y, const Table& table) {
    for (int t = 0; t < shape.seq_len; ++t) {
      const Scalar* cosine = table.cosine.data() + t * kPairs;
      const Scalar* sine = table.sine.data() + t * kPairs;
      for (int head = 0; head < shape.num_heads; ++head) {
        const Scalar* from = x.data + t * Input::cols + head * shape.d_k;
        Scalar* to = y.data + t * Input::cols + head * shape.d_k;
        if constexpr (shape.pairs == RotaryPairs::kHalves) {
          kernels::for_each_packet<Scalar>(kPairs, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
            P a = kernels::load<P>(from + i), b = kernels::load<P>(from + kPairs + i);
            rotate_pair<kBack>(a, b, kernels::load<P>(cosine + i), kernels::load<P>(sine + i));
            kernels::store(to + i, a);
            kernels::store(to + kPairs + i, b);
          });
        } else {
          for (int i = 0; i < kPairs; ++i) {
            Scalar a = from[2 * i], b = from[2 * i + 1];
            rotate_pair<kBack>(a, b, cosine[i], sine[i]);
            to[2 * i] = a;
            to[2 * i + 1] = b;
          }
        }
        for (int i = shape.rotary_dim; i < shape.d_k; ++i) to[i] = from[i];
      }
    }
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
