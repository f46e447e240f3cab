// Brings memory that is needed soon into the first-level cache, during other computation.
//
// A model is larger than a core's caches. So operands of its products, and their results, are in the
// last-level cache or in RAM. A processor predicts one long run of addresses, but not rows of 128 bytes.
#pragma once

#include <attune/kernels/simd/target.hpp>

namespace ATTUNE_NAMESPACE::kernels::detail {

inline constexpr int kLineBytes = 64;
/// Data that fits the first-level cache stays there.
inline constexpr int kFirstLevelBytes = 32 * 1024;

/// Fetches a line. kWrites: to be written, taken from other cores.
template <bool kWrites>
struct FetchLine {
  ATTUNE_INLINE void operator()(const void* address) const { __builtin_prefetch(address, kWrites); }
};

/// kRows rows of kCols scalars, kStride apart.
template <int kRows, int kCols, int kStride, class Scalar>
struct Lines {
  const Scalar* first;

  /// Calls body(address) for an address in each line of a part of the rows; kParts parts make all rows. May
  /// visit a line twice.
  template <int kParts, class Body>
  ATTUNE_INLINE void visit(int part, const Body& body) const {
    constexpr int kLine = kLineBytes / static_cast<int>(sizeof(Scalar)),
                  kEach = (kRows + kParts - 1) / kParts;
    const int row = part * kEach;
    if (row >= kRows) return;
    const Scalar* rows = first + row * kStride;
    ATTUNE_UNROLL for (int i = 0; i < kEach; ++i) {
      if (kRows % kEach != 0 && row + i >= kRows) return;
      // A row may begin within a line, and then touches one line more.
      ATTUNE_UNROLL for (int j = 0; j < kCols - 1; j += kLine) body(rows + i * kStride + j);
      body(rows + i * kStride + kCols - 1);
    }
  }
};

}  // namespace ATTUNE_NAMESPACE::kernels::detail
