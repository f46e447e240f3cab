// One scalar from each of several sequences, used as one scalar.
//
// `Lanes<float>` is a packet where a layer expects a float: lane s of every result has the bits of sequence s
// alone. A layer with Lanes as its scalar is the same layer over as many sequences as a packet has lanes.
// This works for every shape, without remainders, transpositions or sums across lanes.
#pragma once

#include <attune/kernels/simd/sigmoids.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// `lanes` numbers with arithmetic lane by lane. A number converts to equal lanes. The number of lanes is
/// part of the type's name, so that files compiled for different vector units link.
template <class Scalar, int lanes>
struct LanesOf {
  static_assert(lanes == kLanes<Packet<Scalar>>);
  Packet<Scalar> packet;

  LanesOf() = default;
  ATTUNE_INLINE LanesOf(Scalar value) : packet(kernels::broadcast<Packet<Scalar>>(value)) {}
  ATTUNE_INLINE explicit LanesOf(Packet<Scalar> values) requires(!kIsScalar<Packet<Scalar>>)
      : packet(values) {}

  ATTUNE_INLINE friend LanesOf operator+(const LanesOf& a, const LanesOf& b) {
    return LanesOf(kernels::add(a.packet, b.packet));
  }
  ATTUNE_INLINE friend LanesOf operator-(const LanesOf& a, const LanesOf& b) {
    return LanesOf(kernels::subtract(a.packet, b.packet));
  }
  ATTUNE_INLINE friend LanesOf operator*(const LanesOf& a, const LanesOf& b) {
    return LanesOf(kernels::multiply(a.packet, b.packet));
  }
  ATTUNE_INLINE friend LanesOf operator/(const LanesOf& a, const LanesOf& b) {
    return LanesOf(kernels::divide(a.packet, b.packet));
  }
  ATTUNE_INLINE friend LanesOf operator-(const LanesOf& a) { return LanesOf(kernels::negate(a.packet)); }
  ATTUNE_INLINE LanesOf& operator+=(const LanesOf& other) { return *this = *this + other; }
  ATTUNE_INLINE LanesOf& operator*=(const LanesOf& other) { return *this = *this * other; }
};

/// LanesOf with the lanes of the widest packet.
template <class Scalar>
using Lanes = LanesOf<Scalar, kLanes<Packet<Scalar>>>;

template <class Scalar, int lanes>
struct RealOf<LanesOf<Scalar, lanes>> {
  using type = Scalar;
};

/// Number of sequences in a scalar: 1, or its lanes.
template <class Scalar>
inline constexpr int kSequencesIn = 1;
template <class Scalar, int lanes>
inline constexpr int kSequencesIn<LanesOf<Scalar, lanes>> = lanes;

/// to[i] = lane `lane` of from[i], for `size` scalars.
template <class Scalar, int lanes>
void take_lane(int size, const LanesOf<Scalar, lanes>* from, int lane, Scalar* to) {
  const auto* all = reinterpret_cast<const Scalar*>(from) + lane;
  for (int i = 0; i < size; ++i) to[i] = all[i * lanes];
}
/// Lane `lane` of to[i] = from[i], for `size` scalars.
template <class Scalar, int lanes>
void put_lane(int size, const Scalar* from, int lane, LanesOf<Scalar, lanes>* to) {
  auto* all = reinterpret_cast<Scalar*>(to) + lane;
  for (int i = 0; i < size; ++i) all[i * lanes] = from[i];
}

// Operations that expect one number, lane by lane.
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> multiply_add(const LanesOf<Scalar, lanes>& a,
                                                  const LanesOf<Scalar, lanes>& b,
                                                  const LanesOf<Scalar, lanes>& c) {
  return LanesOf<Scalar, lanes>(multiply_add(a.packet, b.packet, c.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> subtract_product(const LanesOf<Scalar, lanes>& c,
                                                      const LanesOf<Scalar, lanes>& a,
                                                      const LanesOf<Scalar, lanes>& b) {
  return LanesOf<Scalar, lanes>(subtract_product(c.packet, a.packet, b.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> maximum(const LanesOf<Scalar, lanes>& a,
                                             const LanesOf<Scalar, lanes>& b) {
  return LanesOf<Scalar, lanes>(maximum(a.packet, b.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> magnitude(const LanesOf<Scalar, lanes>& a) {
  return LanesOf<Scalar, lanes>(magnitude(a.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> select_less(const LanesOf<Scalar, lanes>& x,
                                                 const LanesOf<Scalar, lanes>& bound,
                                                 const LanesOf<Scalar, lanes>& then,
                                                 const LanesOf<Scalar, lanes>& otherwise) {
  return LanesOf<Scalar, lanes>(select_less(x.packet, bound.packet, then.packet, otherwise.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> square_root(const LanesOf<Scalar, lanes>& a) {
  return LanesOf<Scalar, lanes>(square_root(a.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> exponential(const LanesOf<Scalar, lanes>& x) {
  return LanesOf<Scalar, lanes>(exponential(x.packet));
}
template <class Scalar, int lanes>
ATTUNE_INLINE LanesOf<Scalar, lanes> normal_tail(const LanesOf<Scalar, lanes>& x) {
  return LanesOf<Scalar, lanes>(normal_tail(x.packet));
}
template <int count, class Scalar, int lanes>
ATTUNE_INLINE void exponentials(LanesOf<Scalar, lanes>* x) {
  Array<Packet<Scalar>, count> packets;
  ATTUNE_UNROLL for (int i = 0; i < count; ++i) packets[i] = x[i].packet;
  exponentials<count>(packets);
  ATTUNE_UNROLL for (int i = 0; i < count; ++i) x[i].packet = packets[i];
}

}  // namespace ATTUNE_NAMESPACE::kernels
