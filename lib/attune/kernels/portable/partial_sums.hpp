// The partial sums of ops/reduce.hpp, in packets.
#pragma once

#include <attune/kernels/simd/arithmetic.hpp>
#include <attune/kernels/simd/fold.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// Number of interleaved partial sums per sum.
inline constexpr int kSumLanes = 16;

namespace detail {

// Number of lanes that a sum of kSize terms uses. Lanes after the last term stay −0 and change nothing.
template <int kSize>
inline constexpr int kUsedLanes = kSize <= 4   ? 4
                                  : kSize <= 8 ? 8
                                               : kSumLanes;

// The partial sums of one sum, in packets.
template <class Scalar, int kSize>
struct PartialSums {
  using P = Packet<Scalar, kUsedLanes<kSize>>;
  static constexpr int kPackets = kUsedLanes<kSize> / kLanes<P>;

  // Adding −0 leaves every number unchanged, even +0.
  ATTUNE_INLINE explicit PartialSums(Scalar start = Scalar(-0.0)) {
    ATTUNE_UNROLL for (P& some : partial) some = broadcast<P>(start);
  }
  // Adds the terms of packet number `packet`.
  ATTUNE_INLINE void add_terms(int packet, const P& terms) {
    P& some = partial[packet % kPackets];
    some = add(some, terms);
  }
  // Adds the terms from `first` on, one in each lane.
  template <class Term>
  ATTUNE_INLINE void add_lanes(int first, const Term& term) {
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) {
      add_terms(p, term.template operator()<P>(first + p * kLanes<P>));
    }
  }
  // Adds the last terms, which fill only some of the lanes.
  template <class Term>
  ATTUNE_INLINE void add_rest(const Term& term) {
    constexpr int kWhole = kSize / kUsedLanes<kSize> * kUsedLanes<kSize>;
    Array<Scalar, kUsedLanes<kSize>> lanes;
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) store(lanes + p * kLanes<P>, partial[p]);
    for_each_packet<Scalar>(
        kSize,
        [&]<class Q>(int i) ATTUNE_INLINE_LAMBDA {
          Scalar* to = lanes + (i - kWhole);
          store(to, add(load<Q>(to), term.template operator()<Q>(i)));
        },
        kWhole);
    ATTUNE_UNROLL for (int p = 0; p < kPackets; ++p) partial[p] = load<P>(lanes + p * kLanes<P>);
  }
  ATTUNE_INLINE Scalar total() {
    ATTUNE_UNROLL for (int half = kPackets / 2; half >= 1; half /= 2) {
      ATTUNE_UNROLL for (int p = 0; p < half; ++p) add_terms(p, partial[p + half]);
    }
    return fold(partial[0],
                [](const auto& left, const auto& right) ATTUNE_INLINE_LAMBDA { return add(left, right); });
  }

  Array<P, kPackets> partial;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels
