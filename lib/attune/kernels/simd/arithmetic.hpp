// The packets of every kernel, in the arithmetic of policy.hpp.
//
// One instruction computes on one packet. `Packet<Scalar, W>` is the target's widest type with at most W
// lanes: an Eigen packet, or the scalar itself. Kernels are written once over it.
//
// Within a policy every operation here is correctly rounded (IEEE 754), so packets of any width and scalars
// give the same bits. Translation units must be compiled with -ffp-contract=off (the CMake target
// attune::attune does it).
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <attune/kernels/policy.hpp>
#include <attune/kernels/simd/eigen_packets.hpp>
#include <attune/kernels/simd/packet_mve.hpp>
#include <attune/kernels/simd/software_arithmetic.hpp>

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "attune needs Eigen 3.4 or newer; the compiler found an older one"
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wignored-attributes"  // as a template argument, a packet loses only its alignment
#endif

namespace ATTUNE_NAMESPACE::kernels {

/// The lanes of a packet, and its loads and stores. Eigen knows its own packets and every scalar;
/// simd/packet_mve.hpp and cortex_m/gemm_tile.hpp specialize it for theirs. No other header names
/// Eigen::internal.
template <class P>
struct PacketTraits {
  using Scalar = typename Eigen::internal::unpacket_traits<P>::type;
  using Half = typename Eigen::internal::unpacket_traits<P>::half;
  static constexpr int kLanes = Eigen::internal::unpacket_traits<P>::size;

  ATTUNE_INLINE static P load(const Scalar* from) { return Eigen::internal::ploadu<P>(from); }
  ATTUNE_INLINE static void store(Scalar* to, const P& value) { Eigen::internal::pstoreu(to, value); }
  ATTUNE_INLINE static P broadcast(const Scalar& value) { return Eigen::internal::pset1<P>(value); }
};

namespace detail {

template <class Scalar>
struct WidestPacket {
  using type = typename Eigen::internal::packet_traits<Scalar>::type;
};
#if ATTUNE_MVE
template <>
struct WidestPacket<float> {
  using type = float32x4_t;
};
#elif defined(__ARM_NEON) && !defined(__aarch64__) && !ATTUNE_NEON
template <>
struct WidestPacket<float> {
  using type = float;
};
#endif

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
#if ATTUNE_CORTEX_M_FPU
  if constexpr (std::is_same_v<Scalar, float>) asm("" : "+t"(value));
#endif
  return value;
}

template <class P>
ATTUNE_INLINE P add(const P& a, const P& b) {
  return Eigen::internal::padd(a, b);
}

template <class P>
ATTUNE_INLINE P subtract(const P& a, const P& b) {
  return Eigen::internal::psub(a, b);
}

template <class P>
ATTUNE_INLINE P multiply(const P& a, const P& b) {
  return Eigen::internal::pmul(a, b);
}

/// The same with one number for all lanes of a.
template <class P>
ATTUNE_INLINE P multiple(ScalarOf<P> a, const P& b) {
#if ATTUNE_MVE
  if constexpr (std::is_same_v<P, float32x4_t>) return vmulq_n_f32(b, a);
#endif
  return multiply(broadcast<P>(a), b);
}

/// −a.
template <class P>
ATTUNE_INLINE P negate(const P& a) {
  return Eigen::internal::pnegate(a);
}

/// a · b + c: one rounding in `fused`, two in `unfused`.
template <class P>
ATTUNE_INLINE P multiply_add(const P& a, const P& b, const P& c) {
#if ATTUNE_FUSED
  if constexpr (std::is_same_v<P, float>) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (std::is_same_v<P, double>) {
    return double_fma(a, b, c);
  } else {
    return Eigen::internal::pmadd(a, b, c);
  }
#else
  return add(multiply(a, b), c);
#endif
}

/// The same with one number for all lanes of a.
template <class P>
ATTUNE_INLINE P add_multiple(ScalarOf<P> a, const P& b, const P& c) {
#if ATTUNE_MVE && ATTUNE_FUSED
  if constexpr (std::is_same_v<P, float32x4_t>) return vfmaq_n_f32(c, b, a);
#endif
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
  if constexpr (kIsScalar<P>) {
    return a > b ? a : b;
  } else {
    return Eigen::internal::pmax(a, b);
  }
}

/// |a|.
template <class P>
ATTUNE_INLINE P magnitude(const P& a) {
  if constexpr (kIsScalar<P>) {
    if constexpr (std::is_same_v<P, float>) {
      return __builtin_fabsf(a);
    } else {
      return __builtin_fabs(a);
    }
  } else {
    return Eigen::internal::pabs(a);
  }
}

/// `x < bound ? then : otherwise`, lane by lane; a NaN takes `otherwise`.
template <class P>
ATTUNE_INLINE P select_less(const P& x, const P& bound, const P& then, const P& otherwise) {
  if constexpr (kIsScalar<P>) {
    return x < bound ? then : otherwise;
  } else {
    return Eigen::internal::pselect(Eigen::internal::pcmp_lt(x, bound), then, otherwise);
  }
}
#if defined(EIGEN_VECTORIZE_AVX512)  // whose masks Eigen turns into packets and back
ATTUNE_INLINE Eigen::internal::Packet16f select_less(const Eigen::internal::Packet16f& x,
                                                     const Eigen::internal::Packet16f& bound,
                                                     const Eigen::internal::Packet16f& then,
                                                     const Eigen::internal::Packet16f& otherwise) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, bound, _CMP_LT_OQ), otherwise, then);
}
ATTUNE_INLINE Eigen::internal::Packet8d select_less(const Eigen::internal::Packet8d& x,
                                                    const Eigen::internal::Packet8d& bound,
                                                    const Eigen::internal::Packet8d& then,
                                                    const Eigen::internal::Packet8d& otherwise) {
  return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, bound, _CMP_LT_OQ), otherwise, then);
}
#endif

/// Transposes four packets of four lanes in place.
template <class P>
ATTUNE_INLINE void transpose_four(P* rows) {
  Eigen::internal::PacketBlock<P, 4> block;
  ATTUNE_UNROLL for (int i = 0; i < 4; ++i) block.packet[i] = rows[i];
  Eigen::internal::ptranspose(block);
  ATTUNE_UNROLL for (int i = 0; i < 4; ++i) rows[i] = block.packet[i];
}

/// Whether a bit of a packet, of 16 bytes or more, is set.
template <class Bits>
ATTUNE_INLINE bool any_bit(const Bits& bits) {
#if defined(EIGEN_VECTORIZE_AVX512)
  if constexpr (sizeof(Bits) == 64) {
    const auto all = std::bit_cast<__m512i>(bits);
    return _mm512_test_epi32_mask(all, all) != 0;
  }
#endif
#if defined(EIGEN_VECTORIZE_AVX)
  if constexpr (sizeof(Bits) == 32) {
    const auto all = std::bit_cast<__m256i>(bits);
    return _mm256_testz_si256(all, all) == 0;
  }
#endif
#if defined(EIGEN_VECTORIZE_SSE2)
  if constexpr (sizeof(Bits) == 16) {
    const __m128i zeros = _mm_cmpeq_epi8(std::bit_cast<__m128i>(bits), _mm_setzero_si128());
    return _mm_movemask_epi8(zeros) != 0xFFFF;
  }
#endif
  std::uint64_t words[sizeof(Bits) / sizeof(std::uint64_t)], any = 0;
  std::memcpy(words, &bits, sizeof bits);
  for (const std::uint64_t element : words) any |= element;
  return any != 0;
}

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
  for (int lane = 0; lane < kLanes<P>; ++lane) {
    if constexpr (kArity == 1) {
      out[lane] = function(in[0][lane]);
    } else {
      out[lane] = function(in[0][lane], in[1][lane]);
    }
  }
  return load<P>(out);
}

}  // namespace detail

/// a / b, correctly rounded. 32-bit NEON has only an estimate, so its lanes go through the scalar unit.
template <class P>
ATTUNE_INLINE P divide(const P& a, const P& b) {
#if defined(__ARM_NEON) && !defined(__aarch64__)
  if constexpr (!kIsScalar<P>) {
    return detail::lane_by_lane<P>([](auto x, auto y) { return x / y; }, a, b);
  }
#endif
  return Eigen::internal::pdiv(a, b);
}

/// √a, correctly rounded. Uses neither Eigen's vector square root, which may be a reciprocal estimate
/// (EIGEN_FAST_MATH), nor libm's, which keeps errno.
ATTUNE_INLINE float square_root(float a) {
#if defined(EIGEN_VECTORIZE_SSE)
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
#if defined(EIGEN_VECTORIZE_SSE2)
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
#if defined(EIGEN_VECTORIZE_SSE)
ATTUNE_INLINE Eigen::internal::Packet4f square_root(Eigen::internal::Packet4f a) { return _mm_sqrt_ps(a); }
ATTUNE_INLINE Eigen::internal::Packet2d square_root(Eigen::internal::Packet2d a) { return _mm_sqrt_pd(a); }
#endif
#if defined(EIGEN_VECTORIZE_AVX)
ATTUNE_INLINE Eigen::internal::Packet8f square_root(Eigen::internal::Packet8f a) { return _mm256_sqrt_ps(a); }
ATTUNE_INLINE Eigen::internal::Packet4d square_root(Eigen::internal::Packet4d a) { return _mm256_sqrt_pd(a); }
#endif
#if defined(EIGEN_VECTORIZE_AVX512)
ATTUNE_INLINE Eigen::internal::Packet16f square_root(Eigen::internal::Packet16f a) {
  return _mm512_maskz_sqrt_ps(0xFFFF, a);
}
ATTUNE_INLINE Eigen::internal::Packet8d square_root(Eigen::internal::Packet8d a) {
  return _mm512_maskz_sqrt_pd(0xFF, a);
}
#endif
#if defined(EIGEN_VECTORIZE_NEON) && defined(__aarch64__)
ATTUNE_INLINE Eigen::internal::Packet4f square_root(Eigen::internal::Packet4f a) { return vsqrtq_f32(a); }
ATTUNE_INLINE Eigen::internal::Packet2f square_root(Eigen::internal::Packet2f a) { return vsqrt_f32(a); }
ATTUNE_INLINE Eigen::internal::Packet2d square_root(Eigen::internal::Packet2d a) { return vsqrtq_f64(a); }
#elif defined(EIGEN_VECTORIZE_NEON)
ATTUNE_INLINE Eigen::internal::Packet4f square_root(Eigen::internal::Packet4f a) {
  return detail::lane_by_lane<Eigen::internal::Packet4f>([](float x) { return square_root(x); }, a);
}
ATTUNE_INLINE Eigen::internal::Packet2f square_root(Eigen::internal::Packet2f a) {
  return detail::lane_by_lane<Eigen::internal::Packet2f>([](float x) { return square_root(x); }, a);
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
