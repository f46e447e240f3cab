// Replaces scalars in memory by a function of themselves, a few packets at a time, so that independent chains
// of instructions overlap. An incomplete packet is processed as a whole one.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/portable/partial_sums.hpp>
#include <attune/kernels/simd/target.hpp>

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

// The first `count` scalars at `from`, fewer than P's lanes, followed by −∞.
template <class P, int count, class Scalar>
ATTUNE_INLINE P load_first(const Scalar* from) {
  static constexpr auto kBehind = [] {
    std::array<Scalar, std::size_t{kLanes<P>}> lanes{};
    for (std::size_t lane = count; lane < lanes.size(); ++lane) {
      lanes[lane] = -std::numeric_limits<Scalar>::infinity();
    }
    return lanes;
  }();
  return add(load_and_zeros<count, P>(from), load<P>(kBehind.data()));
}

// Stores the first `count` lanes.
template <int count, class Scalar, class P>
ATTUNE_INLINE void store_first(Scalar* to, const P& value) {
  Array<Scalar, kLanes<P>> lanes;
  store(lanes, value);
  std::memcpy(to, lanes, sizeof(Scalar) * count);
}

}  // namespace detail

/// Replaces kSize scalars x: replace.template operator()<count>(packets) replaces `count` packets of
/// partial_sums.hpp, then seen(number, packet) gets each result. Lanes after the last scalar are −∞ at first.
template <int kSize, class Scalar, class Replace, class Seen>
ATTUNE_INLINE void replace_packets(Scalar* x, const Replace& replace, const Seen& seen) {
  using P = typename detail::PartialSums<Scalar, kSize>::P;
  // As many packets at once that a packet's number among them equals its number among the partial sums.
  // Scalars are summed elsewhere: as many as fit in registers.
  constexpr int kAtOnce = kIsScalar<P> ? 4 : larger(4, detail::PartialSums<Scalar, kSize>::kPackets);
  constexpr int kPackets = kSize / kLanes<P>, kMany = kPackets / kAtOnce * kAtOnce;
  constexpr int kFew = kPackets - kMany, kRest = kSize % kLanes<P>;
  const auto some = [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
    Array<P, count> packets;
    ATTUNE_UNROLL for (int i = 0; i < count; ++i) packets[i] = load<P>(x + (first + i) * kLanes<P>);
    replace.template operator()<count>(packets);
    ATTUNE_UNROLL for (int i = 0; i < count; ++i) {
      store(x + (first + i) * kLanes<P>, packets[i]);
      seen(i, packets[i]);
    }
  };
  for (int first = 0; first < kMany; first += kAtOnce) some.template operator()<kAtOnce>(first);
  if constexpr (kFew > 0) some.template operator()<kFew>(kMany);
  if constexpr (kRest > 0) {
    Scalar* const rest = x + kPackets * kLanes<P>;
    P last[1] = {detail::load_first<P, kRest>(rest)};
    replace.template operator()<1>(last);
    detail::store_first<kRest>(rest, last[0]);
    seen(kFew, last[0]);
  }
}
/// The same without a use of the results.
template <int kSize, class Scalar, class Replace>
ATTUNE_INLINE void replace_packets(Scalar* x, const Replace& replace) {
  replace_packets<kSize>(x, replace, [](int, const auto&) ATTUNE_INLINE_LAMBDA {});
}

}  // namespace ATTUNE_NAMESPACE::kernels
