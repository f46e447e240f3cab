// What the arithmetic units can do at best: independent multiply-accumulates on the widest vectors, in
// registers.
#pragma once

#include <utility>

#include <Eigen/Core>

namespace bench {

// Enough to hide a latency of 4 to 6 cycles on two units, few enough for 16 registers.
inline constexpr int kAccumulators = 12;
inline constexpr int kPeakRounds = 400;
using PeakPacket = Eigen::internal::packet_traits<float>::type;
inline constexpr double kPeakFlops = 2.0 * kAccumulators * kPeakRounds * (sizeof(PeakPacket) / sizeof(float));

#if defined(__x86_64__) || defined(__i386__)
#define ATTUNE_BENCH_IN_REGISTER(x) asm volatile("" : "+x"(x))
#else
#define ATTUNE_BENCH_IN_REGISTER(x) asm volatile("" : "+w"(x))
#endif

template <std::size_t... index>
inline void peak_work(std::index_sequence<index...>) {
  namespace packet = Eigen::internal;
  PeakPacket left = packet::pset1<PeakPacket>(0.999f);
  PeakPacket right = packet::pset1<PeakPacket>(0.001f);
  ATTUNE_BENCH_IN_REGISTER(right);
  PeakPacket sums[] = {(static_cast<void>(index), right)...};
  const auto accumulate = [&left, right](PeakPacket& sum) {
    ATTUNE_BENCH_IN_REGISTER(left);  // or the product would be taken out of the loop
#if ATTUNE_FUSED
    sum = packet::pmadd(left, right, sum);
#else
    sum = packet::padd(packet::pmul(left, right), sum);
#endif
    ATTUNE_BENCH_IN_REGISTER(sum);
  };
  for (int round = 0; round < kPeakRounds; ++round) (accumulate(sums[index]), ...);
}

/// kPeakFlops floating-point operations, as fast as this processor does them in the compiled arithmetic:
/// fused, or a multiplication and an addition.
inline void peak_work() { peak_work(std::make_index_sequence<kAccumulators>()); }

}  // namespace bench
