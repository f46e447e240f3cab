// The packets of every kernel, in the arithmetic of policy.hpp.
//
// One instruction computes on one packet. `Packet<Scalar, W>` is the target's widest type with at most W
// lanes, or the scalar itself. Kernels are written once over it.
//
// Within a policy every operation here is correctly rounded (IEEE 754), so packets of any width and scalars
// give the same bits. Translation units must be compiled with -ffp-contract=off (the CMake target
// attune::attune does it).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <attune/kernels/policy.hpp>
#include <attune/kernels/simd/packet.hpp>
#include <attune/kernels/simd/packet_mve.hpp>
#include <attune/kernels/simd/packet_neon.hpp>
#include <attune/kernels/simd/packet_x86.hpp>
#include <attune/kernels/simd/software_arithmetic.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wignored-attributes"  // as a template argument, a packet loses only its alignment
#endif

namespace ATTUNE_NAMESPACE::kernels {

namespace detail {

template <class Scalar, class P, int kMaxLanes>
constexpr auto narrow() {
  using Half = typename PacketTraits<P>::Half;
  if constexpr (PacketTraits<P>::kLanes <= kMaxLanes) {
    return std::type_identity<P>{};
  } else if constexpr (std::is_same_v<Half, P>) {
    return std::type_identity<Scalar>{};
  } else {
    return narrow<Scalar, Half, kMaxLanes>();
  }
}

}  // namespace detail

/// More lanes than any packet has.
inline constexpr int kAnyLanes = 1 << 10;

/// The widest packet of at most `kMaxLanes` lanes; `Scalar` itself if there is none.
template <class Scalar, int kMaxLanes = kAnyLanes>
using Packet =
    typename decltype(detail::narrow<Scalar, typename detail::WidestPacket<Scalar>::type, kMaxLanes>())::type;

template <class P>
inline constexpr int kLanes = PacketTraits<P>::kLanes;

/// T[size] for an int, without a warning by -Wsign-conversion.
template <class T, int size>
using Array = T[static_cast<std::size_t>(size)];

template <class P>
inline constexpr bool kIsScalar = std::is_floating_point_v<P>;

template <class P>
using ScalarOf = typename PacketTraits<P>::Scalar;

/// The number type in a layer's scalar: the scalar itself, except for lanes (kernels/simd/lanes.hpp).
template <class Scalar>
struct RealOf {
  using type = Scalar;
};
template <class Scalar>
using Real = typename RealOf<Scalar>::type;

template <class P, class Scalar>
ATTUNE_INLINE P load(const Scalar* from) {
  return PacketTraits<P>::load(from);
}

template <class Scalar, class P>
ATTUNE_INLINE void store(Scalar* to, const P& value) {
  PacketTraits<P>::store(to, value);
}

template <class P, class Scalar>
ATTUNE_INLINE P broadcast(Scalar value) {
  return PacketTraits<P>::broadcast(value);
}

/// The same value. On a Cortex-M, the compiler keeps it in an FPU register instead of building the constant
/// again.
template <class Scalar>
ATTUNE_INLINE Scalar in_register(Scalar value) {
  return value;
}
#if ATTUNE_CORTEX_M_FPU
ATTUNE_INLINE float in_register(float value) {
  asm("" : "+t"(value));
  return value;
}
#endif

template <class P>
ATTUNE_INLINE P add(const P& a, const P& b) {
  return a + b;
}

template <class P>
ATTUNE_INLINE P subtract(const P& a, const P& b) {
  return a - b;
}

template <class P>
ATTUNE_INLINE P multiply(const P& a, const P& b) {
  return a * b;
}

/// The same with one number for all lanes of a.
template <class P>
ATTUNE_INLINE P multiple(ScalarOf<P> a, const P& b) {
  return multiply(broadcast<P>(a), b);
}

/// −a.
template <class P>
ATTUNE_INLINE P negate(const P& a) {
  return -a;
}

/// a · b + c: one rounding in `fused`, two in `unfused`.
template <class P>
ATTUNE_INLINE P multiply_add(const P& a, const P& b, const P& c) {
#if ATTUNE_FUSED
  if constexpr (std::is_same_v<P, float>) {
    return __builtin_fmaf(a, b, c);
  } else {
    return double_fma(a, b, c);
  }
#else
  return add(multiply(a, b), c);
#endif
}

/// The same with one number for all lanes of a.
template <class P>
ATTUNE_INLINE P add_multiple(ScalarOf<P> a, const P& b, const P& c) {
  return multiply_add(broadcast<P>(a), b, c);
}

/// c − a · b, rounded like multiply_add.
template <class P>
ATTUNE_INLINE P subtract_product(const P& c, const P& a, const P& b) {
#if ATTUNE_FUSED
  return multiply_add(negate(a), b, c);
#else
  return subtract(c, multiply(a, b));
#endif
}

template <class P>
ATTUNE_INLINE P maximum(const P& a, const P& b) {
  return a > b ? a : b;
}

/// |a|.
ATTUNE_INLINE float magnitude(const float& a) { return __builtin_fabsf(a); }
ATTUNE_INLINE double magnitude(const double& a) { return __builtin_fabs(a); }

/// `x < bound ? then : otherwise`, lane by lane; a NaN takes `otherwise`.
template <class P>
ATTUNE_INLINE P select_less(const P& x, const P& bound, const P& then, const P& otherwise) {
  return x < bound ? then : otherwise;
}

/// Transposes four packets of four lanes in place.
template <class P>
ATTUNE_INLINE void transpose_four(P* rows) {
  const P low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const P low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const P high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const P high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
  rows[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
  rows[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
  rows[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
}

/// Whether a bit of a packet, of 16 bytes or more, is set.
template <class Bits>
ATTUNE_INLINE bool any_bit(const Bits& bits) {
  std::uint64_t words[sizeof(Bits) / sizeof(std::uint64_t)], any = 0;
  std::memcpy(words, &bits, sizeof bits);
  for (const std::uint64_t element : words) any |= element;
  return any != 0;
}
#if defined(__SSE2__)
template <class Bits>
  requires(sizeof(Bits) == 16)
ATTUNE_INLINE bool any_bit(const Bits& bits) {
  const __m128i zeros = _mm_cmpeq_epi8(std::bit_cast<__m128i>(bits), _mm_setzero_si128());
  return _mm_movemask_epi8(zeros) != 0xFFFF;
}
#endif
#if defined(__AVX__)
template <class Bits>
  requires(sizeof(Bits) == 32)
ATTUNE_INLINE bool any_bit(const Bits& bits) {
  const auto all = std::bit_cast<__m256i>(bits);
  return _mm256_testz_si256(all, all) == 0;
}
#endif
#if defined(__AVX512F__)
template <class Bits>
  requires(sizeof(Bits) == 64)
ATTUNE_INLINE bool any_bit(const Bits& bits) {
  const auto all = std::bit_cast<__m512i>(bits);
  return _mm512_test_epi32_mask(all, all) != 0;
}
#endif

namespace detail {

// Runs the scalar unit lane by lane, for operations that the vector unit only approximates.
template <class P, class Function, class... Operands>
ATTUNE_INLINE P lane_by_lane(Function function, const Operands&... operands) {
  using Scalar = ScalarOf<P>;
  constexpr int kArity = static_cast<int>(sizeof...(Operands));
  Array<Array<Scalar, kLanes<P>>, kArity> in;
  Array<Scalar, kLanes<P>> out;
  int operand = 0;
  (store(in[operand++], operands), ...);
  [&]<int... k>(std::integer_sequence<int, k...>) {
    for (int lane = 0; lane < kLanes<P>; ++lane) out[lane] = function(in[k][lane]...);
  }
  (std::make_integer_sequence<int, kArity>{});
  return load<P>(out);
}

}  // namespace detail

/// a / b, correctly rounded. 32-bit NEON has only an estimate, so its lanes go through the scalar unit.
template <class P>
ATTUNE_INLINE P divide(const P& a, const P& b) {
  return a / b;
}
#if defined(__ARM_NEON) && !defined(__aarch64__)
template <class P>
  requires(!kIsScalar<P>)
ATTUNE_INLINE P divide(const P& a, const P& b) {
  return detail::lane_by_lane<P>([](auto x, auto y) { return x / y; }, a, b);
}
#endif

/// √a, correctly rounded. Does not use libm's square root, which keeps errno.
ATTUNE_INLINE float square_root(float a) {
#if defined(__SSE2__)
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
#elif defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 4)
  float root;
  asm("vsqrt.f32 %0, %1" : "=t"(root) : "t"(a));
  return root;
#elif defined(__aarch64__)
  float root;
  asm("fsqrt %s0, %s1" : "=w"(root) : "w"(a));
  return root;
#elif defined(__riscv_flen) && __riscv_flen >= 32
  float root;
  asm("fsqrt.s %0, %1" : "=f"(root) : "f"(a));
  return root;
#elif defined(__arm__) || defined(__riscv) || defined(__xtensa__)
  return detail::software_square_root(a);
#else
  return __builtin_sqrtf(a);
#endif
}
ATTUNE_INLINE double square_root(double a) {
#if defined(__SSE2__)
  return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(a)));
#elif defined(__arm__) && defined(__ARM_FP) && (__ARM_FP & 8)
  double root;
  asm("vsqrt.f64 %P0, %P1" : "=w"(root) : "w"(a));
  return root;
#elif defined(__aarch64__)
  double root;
  asm("fsqrt %d0, %d1" : "=w"(root) : "w"(a));
  return root;
#elif defined(__riscv_flen) && __riscv_flen >= 64
  double root;
  asm("fsqrt.d %0, %1" : "=f"(root) : "f"(a));
  return root;
#elif defined(__arm__) || defined(__riscv) || defined(__xtensa__)
  return detail::software_square_root(a);
#else
  return __builtin_sqrt(a);
#endif
}
#if ATTUNE_NEON  // of 32-bit Arm
ATTUNE_INLINE float32x4_t square_root(const float32x4_t& a) {
  return detail::lane_by_lane<float32x4_t>([](float x) { return square_root(x); }, a);
}
ATTUNE_INLINE float32x2_t square_root(const float32x2_t& a) {
  return detail::lane_by_lane<float32x2_t>([](float x) { return square_root(x); }, a);
}
#endif

/// Calls `body.template operator()<P>(i)` over [0, size) in packets: the widest first, then narrower ones,
/// then scalars. Visits every index once, in rising order.
template <class Scalar, int kMaxLanes = kAnyLanes, class Body>
ATTUNE_INLINE void for_each_packet(int size, const Body& body, int from = 0) {
  using P = Packet<Scalar, kMaxLanes>;
  const int whole = size - (size - from) % kLanes<P>;
  for (int i = from; i < whole; i += kLanes<P>) body.template operator()<P>(i);
  if constexpr (kLanes < P >> 1) {
    if (whole < size) for_each_packet<Scalar, kLanes<P> / 2>(size, body, whole);
  }
}

/// Calls run(size, arrays…), a function of whole packets, for `size` elements of each array. A rest that
/// fills no packet runs as a packet of copies, with zeros behind it. Of equal arrays only one may be written.
/// So a costly function is compiled for one width.
template <class Scalar, class... Elements>
ATTUNE_INLINE void in_whole_packets(void (*run)(int, Elements*...), int size,
                                    std::type_identity_t<Elements>*... arrays) {
  constexpr int kWidth = kLanes<Packet<Scalar>>;
  const int rest = size % kWidth, whole = size - rest;
  if (whole > 0) run(whole, arrays...);
  if constexpr (kWidth > 1) {
    if (rest == 0) return;
    const auto on_copies = [&]<std::size_t... index>(std::index_sequence<index...>) {
      Scalar copies[sizeof...(arrays)][std::size_t{kWidth}] = {};
      const std::size_t bytes = sizeof(Scalar) * static_cast<std::size_t>(rest);
      (std::memcpy(copies[index], arrays + whole, bytes), ...);
      run(kWidth, copies[index]...);
      const auto put = [&](const Scalar* from, auto* to) {
        if constexpr (!std::is_const_v<std::remove_pointer_t<decltype(to)>>) std::memcpy(to, from, bytes);
      };
      (put(copies[index], arrays + whole), ...);
    };
    on_copies(std::make_index_sequence<sizeof...(arrays)>{});
  }
}

}  // namespace ATTUNE_NAMESPACE::kernels

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
