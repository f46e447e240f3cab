// Rotary position embedding: rotates queries and keys by angles that depend on the token's position (Su et
// al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021).
//
//   (a, b) ↦ (a·c − b·s, a·s + b·c),   c = cos(t·ω_i),  s = sin(t·ω_i),  ω_i = base^(−2i/rotary_dim)
//
//   dx: the rotation back.
#pragma once

#include <concepts>
#include <type_traits>

#include <attune/core/sine_table.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/rotate.hpp>
#include <attune/kernels/simd/lanes.hpp>

namespace ATTUNE_NAMESPACE {

/// The features of a head that are rotated as a pair.
enum class RotaryPairs {
  kHalves = 0,       // i and i + rotary_dim/2, as in GPT-NeoX and by default in ONNX
  kInterleaved = 1,  // 2i and 2i + 1, as in the paper
};

namespace detail {

/// A fingerprint that includes a scaling, if there is one.
constexpr std::uint32_t add_scaling(std::uint32_t state, const RotaryScaling& scaling) {
  return scaling.factor == 1
             ? state
             : fingerprint(state, "rotary_scaling", scaling.factor, scaling.low_frequency_factor,
                           scaling.high_frequency_factor, scaling.original_length);
}

}  // namespace detail

/// Dimensions and options of `RotaryPositions`.
struct RotaryShape {
  int seq_len;  // tokens
  int num_heads;
  int d_k;               // features of a head
  int rotary_dim = d_k;  // rotated features of a head, the first ones; the rest is unchanged
  RotaryPairs pairs = RotaryPairs::kHalves;  // the features that are rotated as a pair
  double base = 10'000;                      // base of ω
  RotaryScaling scaling = {};                // scaling of ω for longer sequences
  int offset = 0;                            // position of the first token
};

/// Rotates queries or keys [seq_len, num_heads·d_k], heads side by side as in MultiHeadAttention. Call it on
/// both, after their projections. No parameters, no tape.
template <RotaryShape shape, class ScalarType = float>
struct RotaryPositions : detail::InputUnread {
  static_assert(
      detail::Holds<(shape.seq_len > 0 && shape.num_heads > 0 && shape.d_k > 0)>,
      "attune::RotaryPositions: seq_len, num_heads and d_k must be positive; set all three in RotaryShape");
  static_assert(
      detail::Holds<(shape.rotary_dim > 0 && shape.rotary_dim % 2 == 0 && shape.rotary_dim <= shape.d_k)>,
      "attune::RotaryPositions: rotary_dim must be even and at most d_k: features are rotated in pairs");
  static_assert(detail::Holds<(shape.base > 1 && shape.base <= 1e300)>,
                "attune::RotaryPositions: base must be in (1, 1e300]");
  static_assert(detail::Holds<(shape.scaling.factor >= 1 && shape.scaling.low_frequency_factor > 0 &&
                               shape.scaling.high_frequency_factor > shape.scaling.low_frequency_factor &&
                               shape.scaling.original_length > 0)>,
                "attune::RotaryScaling: factor must be at least 1, low_frequency_factor positive and below "
                "high_frequency_factor, and original_length positive");
  static_assert(detail::Holds<(shape.offset >= 0 && shape.offset <= 1 << 30)>,
                "attune::RotaryPositions: offset must be in [0, 2^30]");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = RotaryPositions<shape, Other>;
  static constexpr std::uint32_t kFingerprint =
      detail::add_scaling(fingerprint("RotaryPositions", shape.num_heads, shape.rotary_dim, shape.pairs,
                                      shape.base, detail::OnlyIf{shape.offset != 0}, shape.offset),
                          shape.scaling);
  /// Number of rotated pairs of features.
  static constexpr int kPairs = shape.rotary_dim / 2;
  using Input = Tensor<Scalar, shape.seq_len, shape.num_heads * shape.d_k>;
  using Output = Input;
  using Parameters = NoParameters;
  static constexpr Abilities kAbilities{.mixes_tokens = false,
                                        .output_may_be_input = true,
                                        .gradient_may_be_input = true,
                                        .lanes = Lanes::kAll};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  /// cos and sin, each [seq_len, rotary_dim/2].
  using Table = detail::SineTable<kernels::Real<Scalar>, shape.seq_len, kPairs>;

  /// Replaces ExtendedAngles if a stream ends with the table.
  struct NoExtendedAngles {};
  /// Number of angles in the table.
  static constexpr std::int64_t kAngles = std::int64_t{shape.seq_len} * kPairs;
  static_assert(detail::Holds<(kAngles <= detail::kMaxAngles)>,
                "attune::RotaryPositions: the table is too large for the compiler; seq_len * rotary_dim must "
                "be at most 262144");
  /// Angles of positions offset … offset + seq_len − 1. In flash; large tables on a PC are filled at startup.
  /// Exists only if used.
  static constexpr const Table& kTable =
      detail::TableOf<Table, RotaryPositions, (kAngles <= detail::kMaxConstantAngles)>::value;
  /// Computes the table.
  static constexpr void fill(Table& table) {
    constexpr RotaryShape kOptions =
        shape;  // at run time, clang reads wrong numbers from a template's argument
    detail::fill(table, kOptions.base, kOptions.rotary_dim, kOptions.offset, kOptions.scaling);
  }

  /// Angles that a stream keeps for positions beyond kTable, if it can reach them.
  template <CacheShape cache>
  using ExtendedAngles = std::conditional_t<detail::goes_beyond(cache, shape.seq_len),
                                            detail::AnglesOfPosition<kPairs>, NoExtendedAngles>;

  /// The angles of tokens from number `first` on, from kTable if it has them.
  template <int tokens, class Angles>
  static void angles_from(std::uint64_t first, detail::SineTable<Scalar, tokens, kPairs>& angles,
                          [[maybe_unused]] Angles& beyond) {
    for (int t = 0; t < tokens; ++t) {
      const std::uint64_t position = first + static_cast<std::uint64_t>(t);
      if constexpr (!std::is_same_v<Angles, NoExtendedAngles>) {
        if (position >= std::uint64_t{shape.seq_len}) {
          static constexpr auto kFrequencies =
              detail::frequencies<kPairs>(shape.base, shape.rotary_dim, shape.scaling);
          beyond.move_to(position + shape.offset, kFrequencies);
          for (int i = 0; i < kPairs; ++i) {
            angles.cosine(t, i) = static_cast<Scalar>(beyond.of[i].cosine);
            angles.sine(t, i) = static_cast<Scalar>(beyond.of[i].sine);
          }
          continue;
        }
      }
      for (int i = 0; i < kPairs; ++i) {
        angles.cosine(t, i) = kTable.cosine(static_cast<int>(position), i);
        angles.sine(t, i) = kTable.sine(static_cast<int>(position), i);
      }
    }
  }

  /// Runs the layer token by token.
  template <int tokens, CacheShape cache>
  struct Stream {
    using Memory = ExtendedAngles<cache>;
    struct Scratch {
      detail::SineTable<Scalar, tokens, kPairs> angles;
    };
    static void step(std::uint64_t position, const auto&,
                     ConstView<Tensor<Scalar, tokens, shape.num_heads * shape.d_k>> x,
                     View<Tensor<Scalar, tokens, shape.num_heads * shape.d_k>> y, Memory& memory,
                     Scratch& scratch) {
      angles_from(position, scratch.angles, memory);
      RotaryPositions<detail::with(shape, &RotaryShape::seq_len, tokens), Scalar>::forward(x, y,
                                                                                           scratch.angles);
    }
  };

  /// The number of tokens of the layer.
  using AllTokens = std::integral_constant<int, shape.seq_len>;
  /// y = x, rotated by kTable or by a table of other positions. `y` may be `x`. Rotates the first `tokens`
  /// tokens only.
  template <std::convertible_to<int> Used = AllTokens>
  static void forward(ConstView<Input> x, View<Output> y, Used tokens = {}) {
    rotate<false>(x, y, kTable, tokens);
  }
  template <std::convertible_to<int> Used = AllTokens>
  static void forward(ConstView<Input> x, View<Output> y, const Table& table, Used tokens = {}) {
    rotate<false>(x, y, table, tokens);
  }
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&) {
    forward(x, y);
  }
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape&, Scratch&) {
    forward(x, y);
  }

  /// dx = dy, rotated back. `dx` may be `dy`.
  template <std::convertible_to<int> Used = AllTokens>
  static void backward(ConstView<Output> dy, View<Input> dx, Used tokens = {}) {
    rotate<true>(dy, dx, kTable, tokens);
  }
  static void backward(ConstView<Output> dy, View<Input> dx, const Table& table) {
    rotate<true>(dy, dx, table);
  }
  template <class Dx>
  static void backward(const Parameters&, ConstView<Input>, const Tape&, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&) {
    detail::if_wanted<Input>(dx, [&](View<Input> to) { backward(dy, to); });
  }

 private:
  // One packet of numbers from a table. With lanes, the same number in each lane (kernels/simd/lanes.hpp).
  template <class P>
  ATTUNE_INLINE static P from_table(const kernels::Real<Scalar>* at) {
    if constexpr (kernels::kSequencesIn < Scalar >> 1) {
      return kernels::broadcast<P>(*at);
    } else {
      return kernels::load<P>(at);
    }
  }

  template <bool kBack, class Used = AllTokens>
  [[gnu::noinline]] static void rotate(ConstView<Input> x, View<Output> y, const Table& table,
                                       Used tokens = {}) {
    for (int t = 0; t < tokens; ++t) {
      const auto* cosine = table.cosine.data() + t * kPairs;
      const auto* sine = table.sine.data() + t * kPairs;
      const Scalar* from = x.data + t * Input::cols;
      Scalar* to = y.data + t * Input::cols;
      const auto rotate_at = [&]<class P>(int first, int second, const P& c,
                                          const P& s) ATTUNE_INLINE_LAMBDA {
        for (int head = 0; head < Input::cols; head += shape.d_k) {
          P a = kernels::load<P>(from + head + first), b = kernels::load<P>(from + head + second);
          kernels::rotate_pair<kBack>(a, b, c, s);
          kernels::store(to + head + first, a);
          kernels::store(to + head + second, b);
        }
      };
      if constexpr (shape.pairs == RotaryPairs::kHalves) {
        kernels::for_each_packet<Scalar>(kPairs, [&]<class P>(int i) ATTUNE_INLINE_LAMBDA {
          rotate_at(i, kPairs + i, from_table<P>(cosine + i), from_table<P>(sine + i));
        });
      } else {
        for (int i = 0; i < kPairs; ++i) {
          rotate_at(2 * i, 2 * i + 1, from_table<Scalar>(cosine + i), from_table<Scalar>(sine + i));
        }
      }
      for (int head = 0; head < Input::cols; head += shape.d_k) {
        for (int i = head + shape.rotary_dim; i < head + shape.d_k; ++i) to[i] = from[i];
      }
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
