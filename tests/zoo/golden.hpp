// The hashes that executions end with (zoo/golden.inc), for each model, precision, batch and mask, on every
// target.
#pragma once

#include <string_view>

#include "zoo/execution.hpp"

namespace zoo {

/// Hashes without a mask, with a causal one and with padding, in both arithmetics. 0: there is none.
struct Golden {
  std::string_view model;
  Precision precision;
  int batch;
  std::uint32_t unfused[3], fused[3];
};
inline constexpr Golden kGolden[] = {
    {"", Precision::kFloats, 0, {}, {}},
#include "zoo/golden.inc"
};

/// The hash of a key; 0 where there is none.
constexpr std::uint32_t golden(std::string_view model, const Key& key) {
  const int mask = key.masking == Masking::kLength ? 2 : static_cast<int>(key.masking);
  for (const Golden& row : kGolden) {
    if (row.model == model && row.precision == key.precision && row.batch == key.batch)
      return ATTUNE_FUSED ? row.fused[mask] : row.unfused[mask];
  }
  return 0;
}

}  // namespace zoo
