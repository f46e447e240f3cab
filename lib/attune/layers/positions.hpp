// Positions as vectors added to tokens: learned or sinusoidal (Vaswani et al., "Attention Is All You Need",
// 2017, section 3.5). rotary_positions.hpp has positions as rotations.
//
//   learned:     y = x + W,     dx = dy,   dW += dy
//   sinusoidal:  y = x + E,     dx = dy,   E_(t,2i) = sin(p·ω_i),  E_(t,2i+1) = cos(p·ω_i)
//
//   ω_i = base^(−2i/d_model),  p = first + t
#pragma once

#include <attune/core/rng.hpp>
#include <attune/core/sine_table.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/added_rows.hpp>
#include <attune/weights/gradient_rows.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of positions.
struct PositionShape {
  int seq_len;           // tokens
  int d_model;           // features of a token
  double base = 10'000;  // of sinusoidal frequencies
  int first = 0;         // position of the first token, for sinusoidal vectors
};

namespace detail {

// y = x + W with given vectors W. Backward of x is the identity.
template <class Self, PositionShape shape, class ScalarType>
struct AddedPositions : AddedRows<Self, shape.seq_len, shape.d_model, ScalarType> {
  static_assert(
      Holds<(shape.seq_len > 0 && shape.d_model > 0)>,
      "attune::LearnedPositions, SinusoidalPositions: seq_len and d_model must be positive; set both "
      "in PositionShape");

  using Base = AddedRows<Self, shape.seq_len, shape.d_model, ScalarType>;
  using Scalar = ScalarType;
  using typename Base::Input, typename Base::Output;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("SinusoidalPositions", shape.base, OnlyIf{shape.first != 0}, shape.first);

 protected:
  static void add(const auto& positions, ConstView<Input> x, View<Output> y, const auto& context) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      Base::copy(context.template count<shape.seq_len>(), x.data, y.data);
      add_table(positions, y.data);
    });
  }
};

}  // namespace detail

/// Adds a trained vector per position. No tape.
template <PositionShape shape, class ScalarType = float>
struct LearnedPositions : detail::AddedPositions<LearnedPositions<shape, ScalarType>, shape, ScalarType> {
  static_assert(
      detail::Holds<(shape.first == 0)>,
      "attune::LearnedPositions: the table has only the rows in use, from position 0; leave first at 0");
  static constexpr std::uint32_t kFingerprint = fingerprint("LearnedPositions");
  using Base = detail::AddedPositions<LearnedPositions, shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = LearnedPositions<shape, Other>;
  using SteppedAs = LearnedPositions;
  /// Runs the layer token by token, up to the end of the table.
  template <int tokens, CacheShape>
  struct Stream {
    static constexpr std::uint64_t kMaxTokens = std::uint64_t{shape.seq_len};
    struct Memory {};
    struct Scratch {};
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<Tensor<Scalar, tokens, shape.d_model>> x,
                     View<Tensor<Scalar, tokens, shape.d_model>> y, const auto& /*memory*/, Scratch&) {
      for (int i = 0; i < tokens; ++i) {
        Scalar* row = y.data + i * shape.d_model;
        look_up(parameters.weight, static_cast<int>(position) + i, row);
        kernels::add_to(shape.d_model, x.data + i * shape.d_model, row);
      }
    }
  };
  using Base::forward, Base::backward;
  using typename Base::Input, typename Base::Output;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The storage of a table: never transposed.
    using Table = TableOf<Matrix, Scalar, shape.seq_len, shape.d_model>;
    [[no_unique_address]] typename detail::FloatForm<Table>::type weight;
    ATTUNE_FIELDS(Weight(weight))
  };
  using Parameters = ParametersOf<Tensor>;

  /// y[seq_len, d_model] = x + W. `y` may be `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  ATTUNE_INLINE static void forward(const Set& parameters, ConstView<Input> x, View<Output> y,
                                    const Call& context = {}) {
    Base::add(parameters.weight, x, y, context);
  }
  /// dx[seq_len, d_model] = dy; gradients accumulate. `dx` may be `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input>, ConstView<Output> dy, Dx&& dx, Gradients& gradients,
                       const Call& context = {}) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA {
      const auto tokens = context.template count<shape.seq_len>();
      add_rows(view(gradients.weight), [&](int first, const auto& rows) ATTUNE_INLINE_LAMBDA {
        kernels::add_to(detail::smaller<int>(rows.rows, tokens - first) * rows.cols,
                        dy.data + first * shape.d_model, rows.data);
      });
      Base::pass_on(tokens, dy, dx);
    });
  }
};

/// Adds vectors of sines and cosines, without parameters. In flash; large tables on a PC are filled at
/// startup.
template <PositionShape shape, class ScalarType = float>
struct SinusoidalPositions
    : detail::AddedPositions<SinusoidalPositions<shape, ScalarType>, shape, ScalarType> {
  static_assert(detail::Holds<(shape.first >= 0)>, "attune::SinusoidalPositions: first must not be negative");
  static_assert(detail::Holds<(shape.base > 1 && shape.base <= 1e300)>,
                "attune::SinusoidalPositions: base must be in (1, 1e300]");
  /// Number of wavelengths, each with a sine and a cosine.
  static constexpr int kFrequencies = (shape.d_model + 1) / 2;
  /// Number of angles in the table.
  static constexpr std::int64_t kAngles = std::int64_t{shape.seq_len} * kFrequencies;
  static_assert(detail::Holds<(kAngles <= detail::kMaxAngles)>,
                "attune::SinusoidalPositions: the table is too large for the compiler; seq_len * d_model "
                "must be at most 262144, or use LearnedPositions");

  using Base = detail::AddedPositions<SinusoidalPositions, shape, ScalarType>;
  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = SinusoidalPositions<shape, Other>;
  using SteppedAs = SinusoidalPositions;
  /// Runs the layer on any number of tokens, one by one. Computes the vectors after the end of kVectors.
  template <int tokens, CacheShape cache>
  struct Stream {
    /// Replaces Memory if a stream ends with the table.
    struct InTable {};
    using Memory = std::conditional_t<detail::goes_beyond(cache, shape.seq_len),
                                      detail::AnglesOfPosition<kFrequencies>, InTable>;
    struct Scratch {};
    static void step(std::uint64_t position, const auto&, ConstView<Tensor<Scalar, tokens, shape.d_model>> x,
                     View<Tensor<Scalar, tokens, shape.d_model>> y, auto& memory, Scratch&) {
      for (int i = 0; i < tokens; ++i) {
        Scalar* row = y.data + i * shape.d_model;
        vector_at(position + static_cast<std::uint64_t>(i), row, memory);
        kernels::add_to(shape.d_model, x.data + i * shape.d_model, row);
      }
    }
  };
  using Parameters = NoParameters;
  using Base::forward, Base::backward;
  using typename Base::Input, typename Base::Output;

  /// The type of the table.
  using Vectors = Tensor<kernels::Real<Scalar>, shape.seq_len, shape.d_model>;
  /// E[seq_len, d_model].
  static constexpr const Vectors& kVectors =
      detail::TableOf<Vectors, SinusoidalPositions, (kAngles <= detail::kMaxConstantAngles)>::value;
  /// Computes the table.
  static constexpr void fill(Vectors& vectors) {
    constexpr PositionShape kOptions =
        shape;  // at run time, clang reads wrong numbers from a template's argument
    detail::for_each_angle<shape.seq_len, kFrequencies>(
        kOptions.base, shape.d_model, kOptions.first, [&](int t, int i, const detail::CosineSine& angle) {
          auto* const vector = vectors.values + t * shape.d_model;
          vector[2 * i] = static_cast<kernels::Real<Scalar>>(angle.sine);
          if (2 * i + 1 < shape.d_model) vector[2 * i + 1] = static_cast<kernels::Real<Scalar>>(angle.cosine);
        });
  }

  /// y[seq_len, d_model] = x + E. `y` may be `x`.
  template <AnyContext Call = Context<>>
  ATTUNE_INLINE static void forward(const Parameters&, ConstView<Input> x, View<Output> y,
                                    const Call& context = {}) {
    Base::add(kVectors, x, y, context);
  }
  /// dx[seq_len, d_model] = dy. `dx` may be `dy`.
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input>, ConstView<Output> dy, Dx&& dx, Parameters&,
                       const Call& context = {}) {
    context.stage(
        [&]() ATTUNE_INLINE_LAMBDA { Base::pass_on(context.template count<shape.seq_len>(), dy, dx); });
  }

 private:
  template <class ExtendedAngles>
  static void vector_at(std::uint64_t position, Scalar* vector, [[maybe_unused]] ExtendedAngles& beyond) {
    if constexpr (requires { beyond.next; }) {
      if (position >= std::uint64_t{shape.seq_len}) {
        static constexpr auto kRates = detail::frequencies<kFrequencies>(shape.base, shape.d_model);
        beyond.move_to(position + std::uint64_t{shape.first}, kRates);
        for (int j = 0; j < shape.d_model; ++j) {
          const auto& at = beyond.of[j / 2];
          vector[j] = static_cast<Scalar>(j % 2 == 0 ? at.sine : at.cosine);
        }
        return;
      }
    }
    for (int j = 0; j < shape.d_model; ++j) vector[j] = kVectors(static_cast<int>(position), j);
  }
};

}  // namespace ATTUNE_NAMESPACE
