// A tape in fewer bits: its matrices are packed row by row after forward, and unpacked before backward
// (models/quantized_tape.hpp).
//
// A layer whose tape has large matrices has TapeIn<Gradients, Matrix>, the tape with other storage of these
// matrices. Its visit(visitor, context, tapes…) lists the members once:
//
//   visitor.rows(context, tapes.hidden…);                     a matrix; the context knows its valid rows
//   visitor.template stacked<n>(context, cols, tapes.p…);     n such matrices, with so many valid columns
//   visitor.member(context, tapes.dropout…);                  anything else, which stays as it is
#pragma once

#include <type_traits>

#include <attune/execution/layer.hpp>
#include <attune/kernels/ops/packed_rows.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

/// The numbers of a packed tape.
enum class TapePrecision {
  kInt8 = 0,     // 8-bit integers with a scale per row: a quarter of the memory
  kBfloat16 = 1  // the upper half of a float: half the memory
};

namespace detail {

/// Packed matrices [rows, cols].
template <TapePrecision precision>
struct PackedAs {
  using Element = std::conditional_t<precision == TapePrecision::kInt8, Int8, Bfloat16>;
  template <class Scalar, int rows, int cols>
  using Matrix = QuantizedRows<Element, Scalar, rows, cols>;
};
template <TapePrecision precision, class Matrix>
using PackedMatrix =
    typename PackedAs<precision>::template Matrix<typename Matrix::Scalar, Matrix::rows, Matrix::cols>;
template <class Rows>
concept IsPacked = requires(const Rows& rows) {
  rows.elements;
};

/// Visits the members of two tapes, and copies the second one to the first. Rows that are not valid are
/// neither read nor written.
struct CopyTape {
  template <class To, class From>
  using Packed = std::conditional_t<IsPacked<To>, To, From>;

  // Nothing, where the tape has no such matrix.
  template <class None>
  requires std::is_empty_v<None> ATTUNE_INLINE static void rows(const auto&, None&, const None&) {}
  template <int count, class None>
  requires std::is_empty_v<None> ATTUNE_INLINE static void stacked(const auto&, auto, None&, const None&) {}
  template <class To, class From>
  ATTUNE_INLINE static void rows(const auto& context, To& to, const From& from) {
    stacked<1>(context, std::integral_constant<int, Packed<To, From>::length>{}, to, from);
  }
  /// A matrix that is not kept has no rows.
  template <int number>
  static void rows(const auto& /*context*/, NoMember<number>&, const auto& /*from*/) {}
  template <int count, class To, class From>
  static void stacked(const auto& context, auto cols, To& to, const From& from) {
    constexpr int kRows = Packed<To, From>::count / count, kWorkOfNumber = 4;
    context.template repeat<count>([&](int matrix) ATTUNE_INLINE_LAMBDA {
      context.template each_token<kRows, kWorkOfNumber * Packed<To, From>::length>(
          [&](int row) ATTUNE_INLINE_LAMBDA { copy_row(cols, matrix * kRows + row, to, from); });
    });
  }
  template <class Member>
  ATTUNE_INLINE static void member(const auto& context, Member& to, const Member& from) {
    if constexpr (!std::is_empty_v<Member>) context.stage([&]() ATTUNE_INLINE_LAMBDA { to = from; });
  }

 private:
  template <IsPacked To>
  ATTUNE_INLINE static void copy_row(int cols, int row, To& to, const auto& from) {
    auto* const elements = to.elements + row * to.length;
    if constexpr (To::Element::kScaled) {
      to.scales[row] = kernels::pack_row(cols, &from(row, 0), elements);
    } else {
      kernels::pack_row(cols, &from(row, 0), elements);
    }
  }
  template <IsPacked From>
  ATTUNE_INLINE static void copy_row(int cols, int row, auto& to, const From& from) {
    const auto* const elements = from.elements + row * from.length;
    if constexpr (From::Element::kScaled) {
      kernels::unpack_row(cols, elements, from.scales[row], &to(row, 0));
    } else {
      kernels::unpack_row(cols, elements, &to(row, 0));
    }
    for (int col = cols; col < from.length; ++col) to(row, col) = 0;  // weights of keys that are not valid
  }
};

/// The packed tape of a layer, for a backward to such gradients; the tape itself if the layer has no TapeIn,
/// or inherits one and has another tape.
template <class Layer, class Gradients, TapePrecision precision>
struct QuantizedTapeOf {
  using type = TapeOf<Layer, Gradients>;
};
template <class Layer, class Gradients, TapePrecision precision>
  requires std::is_same_v < TapeOf<Layer, Gradients>,
typename Layer::template TapeIn < Gradients, Tensor >> struct QuantizedTapeOf<Layer, Gradients, precision> {
  using type = typename Layer::template TapeIn<Gradients, PackedAs<precision>::template Matrix>;
};

/// Packs a tape, or unpacks it. A tape without TapeIn is kept as it is.
template <AnyContext Call, class To, class From>
ATTUNE_INLINE void copy_tape(const Call& context, To& to, From& from) {
  To::visit(CopyTape{}, context.unmasked(), to, from);
}
template <AnyContext Call, class Tape>
ATTUNE_INLINE void copy_tape(const Call&, Tape&, Tape&) {}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
