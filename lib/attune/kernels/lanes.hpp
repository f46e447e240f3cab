// One scalar of each of several sequences, as a scalar.
//
// `Lanes<float>` computes on a packet where a layer computes on a float: lane s of every result has the bits
// that sequence s would have had alone. A layer whose scalar is Lanes is the same layer over as many
// sequences as a packet has lanes, whatever its shape, and needs no remainder, transposition or sum across
// lanes.
#pragma once

#include <attune/kernels/elementary.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels {

/// kLanes<Packet<Scalar>> numbers, added, multiplied, … lane by lane. A number is the Lanes that has it in
/// every lane.
template <class Scalar>
struct Lanes {
  Packet<Scalar> packet;

  Lanes() = default;
  ATTUNE_INLINE Lanes(Scalar value) : packet(kernels::broadcast<Packet<Scalar>>(value)) {}
  ATTUNE_INLINE explicit Lanes(Packet<Scalar> lanes) requires(!kIsScalar<Packet<Scalar>>) : packet(lanes) {}

  ATTUNE_INLINE friend Lanes operator+(const Lanes& a, const Lanes& b) {
    return Lanes(kernels::add(a.packet, b.packet));
  }
  ATTUNE_INLINE friend Lanes operator-(const Lanes& a, const Lanes& b) {
    return Lanes(kernels::subtract(a.packet, b.packet));
  }
  ATTUNE_INLINE friend Lanes operator*(const Lanes& a, const Lanes& b) {
    return Lanes(kernels::multiply(a.packet, b.packet));
  }
  ATTUNE_INLINE friend Lanes operator/(const Lanes& a, const Lanes& b) {
    return Lanes(kernels::divide(a.packet, b.packet));
  }
  ATTUNE_INLINE friend Lanes operator-(const Lanes& a) { return Lanes(kernels::negate(a.packet)); }
  ATTUNE_INLINE Lanes& operator+=(const Lanes& other) { return *this = *this + other; }
  ATTUNE_INLINE Lanes& operator*=(const Lanes& other) { return *this = *this * other; }
};

template <class Scalar>
struct RealOf<Lanes<Scalar>> {
  using type = Scalar;
};

// What Eigen's generic packet operations, written for one number, do not do lane by lane.
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> multiply_add(const Lanes<Scalar>& a, const Lanes<Scalar>& b,
                                         const Lanes<Scalar>& c) {
  return Lanes<Scalar>(multiply_add(a.packet, b.packet, c.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> subtract_product(const Lanes<Scalar>& c, const Lanes<Scalar>& a,
                                             const Lanes<Scalar>& b) {
  return Lanes<Scalar>(subtract_product(c.packet, a.packet, b.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> maximum(const Lanes<Scalar>& a, const Lanes<Scalar>& b) {
  return Lanes<Scalar>(maximum(a.packet, b.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> magnitude(const Lanes<Scalar>& a) {
  return Lanes<Scalar>(magnitude(a.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> select_less(const Lanes<Scalar>& x, const Lanes<Scalar>& bound,
                                        const Lanes<Scalar>& then, const Lanes<Scalar>& otherwise) {
  return Lanes<Scalar>(select_less(x.packet, bound.packet, then.packet, otherwise.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> square_root(const Lanes<Scalar>& a) {
  return Lanes<Scalar>(square_root(a.packet));
}
template <class Scalar>
ATTUNE_INLINE Lanes<Scalar> exponential(const Lanes<Scalar>& x) {
  return Lanes<Scalar>(exponential(x.packet));
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels
