// A packet: the vector of one instruction, or a scalar. Each vector unit has a header next to this one. It
// specializes both templates, and overloads the operations of simd/arithmetic.hpp that need its instructions.
#pragma once

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::kernels {

/// The lanes of a packet, and its loads and stores. Any other type is a packet of one lane.
template <class P>
struct PacketTraits {
  using Scalar = P;
  using Half = P;  // the packet of half the lanes; P if there is none
  static constexpr int kLanes = 1;

  ATTUNE_INLINE static P load(const P* from) { return *from; }
  ATTUNE_INLINE static void store(P* to, const P& value) { *to = value; }
  ATTUNE_INLINE static P broadcast(const P& value) { return value; }
};

namespace detail {

template <class Scalar>
struct WidestPacket {
  using type = Scalar;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE::kernels
