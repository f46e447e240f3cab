// A computation in pieces, between which something else can be done: what a main loop owes to its sensors, a
// prediction, a save.
//
//   pieces([&] { … });                                       // a piece
//   pieces.template rows<n, work>([&]<int count>(int first) { … });  // n rows, block by block
//   pieces.template elements<n, work>([&](int first, int count) { … });
//
// A layer is written once, as a sequence of pieces. InOneGo runs them all, and is nothing to the compiler.
// OnePiece goes through the same sequence, skips what lies before the piece that it was made for, runs that,
// and skips the rest. So what one piece leaves to another stands in tape and scratch, never in a variable,
// and which pieces there are depends on shapes alone. Rows and elements must not depend on each other.
//
// `work` is that of a row or an element in multiply-accumulates, or what takes as long: about two and a half
// instructions each on a Cortex-M4.
#pragma once

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

#include <attune/kernels/storage.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// All pieces, one after the other.
struct InOneGo {
  static constexpr bool kInOneGo = true;

  template <class Body>
  ATTUNE_INLINE void operator()(Body&& body) const {
    body();
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void rows(Body&& body) const {
    body.template operator()<count>(0);
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void elements(Body&& body) const {
    body(0, count);
  }
};

/// How much work a piece is, unless a single row is more: below 50,000 instructions on a Cortex-M4.
inline constexpr int kPieceWork = 8192;

/// One piece of a sequence, that with the given number; with a number behind the last one, none.
template <int most_work = kPieceWork>
class OnePiece {
  static_assert(most_work > 0, "attune::OnePiece: the work of a piece must be positive");

 public:
  static constexpr bool kInOneGo = false;

  /// `before`: how many pieces lie before this one. Counts down, as it goes through them; below zero it is
  /// done. Layers copy an OnePiece, which all refer to one number.
  constexpr explicit OnePiece(int& before) : before_(&before) {}

  template <class Body>
  ATTUNE_INLINE void operator()(Body&& body) const {
    if ((*before_)-- == 0) body();
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void rows(Body&& body) const {
    constexpr int kTogether = together<8>(count, work);
    constexpr int kRest = count % kTogether;
    for (int first = 0; first < count - kRest; first += kTogether) {
      (*this)([&]() ATTUNE_INLINE_LAMBDA { body.template operator()<kTogether>(first); });
    }
    if constexpr (kRest > 0) {
      (*this)([&]() ATTUNE_INLINE_LAMBDA { body.template operator()<kRest>(count - kRest); });
    }
  }
  template <int count, int work, class Body>
  ATTUNE_INLINE void elements(Body&& body) const {
    constexpr int kTogether = together<64>(count, work);
    for (int first = 0; first < count; first += kTogether) {
      (*this)([&]() ATTUNE_INLINE_LAMBDA { body(first, std::min(kTogether, count - first)); });
    }
  }

 private:
  // How many rows make a piece: whole register tiles and packets if there is room.
  template <int tile>
  static constexpr int together(int count, int work) {
    const int fitting = std::clamp(most_work / std::max(work, 1), 1, count);
    return fitting < count && fitting > tile ? fitting - fitting % tile : fitting;
  }

  int* before_;
};

/// What layers take behind the mask.
template <class P>
concept AnyPieces = requires {
  { P::kInOneGo } -> std::convertible_to<bool>;
};

namespace detail {

/// What a pass in pieces is given by name does not end before it.
template <class Source>
constexpr void check_stays() {
  using Held = std::remove_cvref_t<Source>;
  constexpr bool kHolds = [] {
    if constexpr (Stored<Held>) {
      return Storage<Held>::kOwns;
    } else {
      return std::is_arithmetic_v<Held>;
    }
  }();
  static_assert(
      !kHolds || std::is_lvalue_reference_v<Source>,
      "attune: a pass in pieces reads its data until it is done, and this is a temporary; give it a "
      "name");
}

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
