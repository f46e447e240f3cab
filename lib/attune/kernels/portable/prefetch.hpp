// Memory that is needed soon, brought into the first-level cache while something else is computed.
//
// A model passes through more memory than a core's caches hold, so that operands of its products, and what
// they are added to, lie in the last level or behind it. A processor guesses ahead of one long run of
// addresses, not of rows of 128 bytes.
#pragma once

#include <attune/kernels/simd/target.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail {

inline constexpr int kLineBytes = 64;
/// What fits the first-level cache stays there.
inline constexpr int kFirstLevelBytes = 32 * 1024;

/// kRows rows of kCols scalars, kStride apart.
template <int kRows, int kCols, int kStride, class Scalar>
struct Lines {
  const Scalar* first;

  /// body(address) for an address in each line of the rows of a part; all kParts of them are all rows. A line
  /// may be visited twice.
  template <int kParts, class Body>
  ATTUNE_INLINE void visit(int part, const Body& body) const {
    constexpr int kLine = kLineBytes / static_cast<int>(sizeof(Scalar)),
                  kEach = (kRows + kParts - 1) / kParts;
    const int row = part * kEach;
    if (row >= kRows) return;
    const Scalar* rows = first + row * kStride;
    ATTUNE_UNROLL for (int i = 0; i < kEach; ++i) {
      if (kRows % kEach != 0 && row + i >= kRows) return;
      // A row may begin within a line, and then ends in one more.
      ATTUNE_UNROLL for (int j = 0; j < kCols - 1; j += kLine) body(rows + i * kStride + j);
      body(rows + i * kStride + kCols - 1);
    }
  }
  template <int kParts>
  ATTUNE_INLINE void fetch(int part) const {
    visit<kParts>(part, [](const Scalar* address) ATTUNE_INLINE_LAMBDA { __builtin_prefetch(address); });
  }
  /// The same of what is written: no other core has it then.
  template <int kParts>
  ATTUNE_INLINE void fetch_to_write(int part) const {
    visit<kParts>(part, [](const Scalar* address) ATTUNE_INLINE_LAMBDA { __builtin_prefetch(address, 1); });
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::kernels::detail
