// Dropout (Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting", 2014),
// inverted: training scales up the kept elements, so inference is the identity.
//
//   y = m ∘ x / (1 − p),   dx = m ∘ dy / (1 − p),   m = 0 with probability p, else 1
//
// The mask is not stored: backward redraws it from forward's seed. The tape takes eight bytes for any size.
// The same seed gives the same mask on every target. Each sequence's seed is known without drawing the masks
// before it.
#pragma once

#include <attune/core/rng.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/stream.hpp>
#include <attune/kernels/ops/drop.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions and rate of `Dropout`.
struct DropoutShape {
  int rows;            // tokens
  int d_model;         // features of a token
  double probability;  // probability to drop an element, in [0, 1)
  int stream = 0;      // selects one of several masks from the same seed
};

/// The seed of a mask: start + n·γ (rng.hpp) for sequence n. Every start is valid, zero included. Layers with
/// the same position and stream draw the same masks.
struct DropoutTape {
  std::uint64_t position;  // in the sequence of masks

  /// Moves to the mask that many sequences later, or earlier if negative.
  constexpr void skip(std::int64_t sequences) {
    position += static_cast<std::uint64_t>(sequences) * detail::kGamma;
  }
  template <class Visitor>
  constexpr void for_each_dropout(const Visitor& visitor) {
    visitor(*this);
  }
};

namespace detail {

/// Work to draw one element, in multiply-accumulates (execution/slices.hpp).
inline constexpr int kWorkOfDraw = 8;

/// Whether a tape has dropout masks. Its for_each_dropout(visitor) then calls visitor(DropoutTape&) for each
/// of them, always in the same order.
template <class Tape>
concept DropsIn = requires(Tape& tape, void (*visitor)(DropoutTape&)) {
  tape.for_each_dropout(visitor);
};

/// for_each_dropout of a tape made of other tapes: visits the masks of each in turn.
template <class Visitor, class... Tapes>
constexpr void for_each_dropout(const Visitor& visitor, Tapes&&... tapes) {
  const auto visit = [&visitor](auto&& tape) {
    if constexpr (DropsIn<std::remove_reference_t<decltype(tape)>>) tape.for_each_dropout(visitor);
  };
  (visit(tapes), ...);
}

// Stores the starts of masks for a tape that is not kept.
template <class Tape>
constexpr int count_masks() {
  return 0;
}
template <DropsIn Tape>
constexpr int count_masks() {
  int count = 0;
  Tape tape;
  tape.for_each_dropout([&count](DropoutTape&) { ++count; });
  return count;
}
template <int count>
struct KeptMasks {
  DropoutTape of[std::size_t{count}];

  template <class Visitor>
  constexpr void for_each_dropout(const Visitor& visitor) {
    for (DropoutTape& mask : of) visitor(mask);
  }
};
template <>
struct KeptMasks<0> {};
template <class Tape>
using MasksOf = KeptMasks<count_masks<Tape>()>;

/// Copies the masks to another tape.
template <class From, class To>
constexpr void copy_masks(From&, To&) {}
template <DropsIn From, class To>
constexpr void copy_masks(From& from, To& to) {
  DropoutTape masks[std::size_t{count_masks<From>()}];
  DropoutTape* mask = masks;
  from.for_each_dropout([&mask](DropoutTape& each) { *mask++ = each; });
  mask = masks;
  to.for_each_dropout([&mask](DropoutTape& each) { each = *mask++; });
}

}  // namespace detail

/// Seeds all masks of a tape with a generator's next numbers. By default, masks start at zero.
template <class Tape>
constexpr void draw_seeds(Tape& tape, Rng& rng) {
  detail::for_each_dropout(
      [&rng](DropoutTape& each) {
        const std::uint64_t high = rng.next();
        each.position = high << 32 | rng.next();
      },
      tape);
}
/// Moves all masks of a tape that many sequences on, or back if negative.
template <class Tape>
constexpr void skip_masks(Tape& tape, std::int64_t sequences) {
  detail::for_each_dropout([sequences](DropoutTape& each) { each.skip(sequences); }, tape);
}

namespace detail {

template <DropoutShape shape>
constexpr DropoutShape checked_dropout_shape() {
  static_assert(Holds<(shape.rows > 0 && shape.d_model > 0)>,
                "attune::Dropout: rows and d_model must be positive; set both in DropoutShape");
  constexpr bool kInRange = shape.probability >= 0 && shape.probability < 1;
  static_assert(Holds<kInRange>,
                "attune::Dropout: probability must be in [0, 1); kept values are divided by 1 - probability");
  DropoutShape checked = at_least_one(shape, &DropoutShape::rows, &DropoutShape::d_model);
  if (!kInRange) checked.probability = 0;
  return checked;
}

}  // namespace detail

/// Dropout (Srivastava et al., 2014). In training each element is 0 with the given probability, else divided
/// by 1 − probability; in inference y = x. The mask depends only on tape and stream, and is the same on every
/// target.
template <DropoutShape dropout_shape, class ScalarType = float>
struct Dropout : detail::InputUnread {
  static constexpr DropoutShape shape = detail::checked_dropout_shape<dropout_shape>();
  using Scalar = ScalarType;
  /// Number of sequences in a scalar (kernels/simd/lanes.hpp).
  static constexpr int kSequences = kernels::kSequencesIn<Scalar>;
  template <class Other>
  using WithScalar = Dropout<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = Dropout<detail::with(shape, &DropoutShape::rows, tokens), Scalar>;
  static constexpr std::uint32_t kFingerprint = fingerprint("Dropout", shape.probability, shape.stream);
  /// Whether anything can be dropped. If not, there is no tape and no code.
  static constexpr bool kDrops = shape.probability > 0;
  using Input = Tensor<Scalar, shape.rows, shape.d_model>;
  using Output = Input;
  using Parameters = NoParameters;
  static constexpr Abilities kAbilities = detail::kInPlaceByToken;
  /// The tape if nothing is dropped.
  struct NoTape {};
  using Tape = std::conditional_t<kDrops, DropoutTape, NoTape>;
  struct Scratch {};
  struct InferenceScratch {};
  /// The source of masks: one generator, or one per lane of a scalar, for consecutive sequences from the
  /// tape's on.
  using Draws = std::conditional_t<kSequences == 1, Rng, kernels::LaneDraws<Rng, kSequences>>;

  /// Inference: y[rows, d_model] = x. `y` may be `x`.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    copy(x, y, context);
  }
  /// Training, with the mask of tape.position. Repeated forwards use the same mask until backward. `y` may be
  /// `x`.
  template <AnyContext Call = Context<>>
  static void forward(const Parameters&, ConstView<Input> x, View<Output> y, Tape& tape, Scratch&,
                      const Call& context = {}) {
    apply(x, tape, y, context);
  }

  /// dx[rows, d_model] from dy. Then moves the tape to the next sequence's mask. `dx` may be `dy`.
  template <class Dx, AnyContext Call = Context<>>
  static void backward(const Parameters&, ConstView<Input>, Tape& tape, ConstView<Output> dy, Dx&& dx,
                       Parameters&, Scratch&, const Call& context = {}) {
    backward(tape, dy, dx, context);
  }

  /// Forward of training, for layers that contain dropout.
  template <AnyContext Call = Context<>>
  static void apply(ConstView<Input> x, [[maybe_unused]] const Tape& tape, View<Output> y,
                    const Call& context = {}) {
    if constexpr (kDrops) {
      context.template token_elements<Input::rows, Input::cols, detail::kWorkOfDraw>(
          [&](int first, int count) ATTUNE_INLINE_LAMBDA {
            Draws rng = generator(tape);
            rng.skip(static_cast<std::uint64_t>(first));
            drop(count, rng, x.data + first, y.data + first);
          });
    } else {
      copy(x, y, context);
    }
  }
  /// Backward of training, for layers that contain dropout.
  template <class Dx, AnyContext Call = Context<>>
  static void backward([[maybe_unused]] Tape& tape, ConstView<Output> dy, Dx&& dx, const Call& context = {}) {
    detail::if_wanted<Input>(dx, [&](View<Input> to) ATTUNE_INLINE_LAMBDA { apply(dy, tape, to, context); });
    if constexpr (kDrops) context.stage([&]() ATTUNE_INLINE_LAMBDA { tape.skip(1); });
  }

  /// For a mask in parts: the generator at the start of the mask.
  static Draws generator(const Tape& tape) {
    if constexpr (kSequences == 1) {
      return generator_of(0, tape);
    } else {
      return [&]<int... lane>(std::integer_sequence<int, lane...>) {
        return Draws{{generator_of(lane, tape)...}};
      }
      (std::make_integer_sequence<int, kSequences>{});
    }
  }
  /// Drops the next `size` elements of x and writes y. `y` may be `x`.
  static void drop(int size, Draws& rng, const Scalar* x, Scalar* y) requires kDrops {
    kernels::drop(size, rng, kThreshold, Scalar(kScale), x, y);
  }

 private:
  // The generator of the sequence that many after the tape's.
  static Rng generator_of(int sequence, Tape tape) {
    // Streams are far apart, so sequence n + 1 of a stream never equals sequence n of the next stream.
    constexpr std::uint64_t kStream = detail::mix(std::uint64_t{shape.stream});
    tape.skip(sequence);
    return Rng(detail::mix(tape.position + kStream));
  }
  static constexpr auto kThreshold = static_cast<std::uint32_t>(shape.probability * 4294967296.0);
  static constexpr auto kScale = static_cast<kernels::Real<Scalar>>(1 / (1 - shape.probability));

  static void copy(ConstView<Input> x, View<Output> y, const auto& context) {
    if (x.data == y.data) return;
    context.template token_elements<Input::rows, Input::cols, 1>(
        [&](int first, int count) ATTUNE_INLINE_LAMBDA {
          for (int i = first; i < first + count; ++i) y.data[i] = x.data[i];
        });
  }
};

}  // namespace ATTUNE_NAMESPACE
