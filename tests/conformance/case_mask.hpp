// The mask of a case, put together from the library's masks.
#pragma once

#include <attune/attention/mask.hpp>

#include "report.hpp"

namespace conformance {

struct MaskOptions {
  bool causal = false;
  bool padding = false;
  int additive_heads = 0;  // 0: no additive mask, 1: one for all heads, otherwise one for each
};

template <class Scalar>
struct MaskData {
  const int* causal_offsets = nullptr;  // [batch]
  const int* lengths = nullptr;         // [batch], valid keys; or
  const bool* valid = nullptr;          // [batch, kv_len]
  const Scalar* additive = nullptr;     // [batch, additive_heads, seq_len, kv_len]
};

template <class First, class Second>
auto both(const First& first, const Second& second) {
  if constexpr (std::is_same_v<First, attune::NoMask>) {
    return second;
  } else if constexpr (std::is_same_v<Second, attune::NoMask>) {
    return first;
  } else {
    return first && second;
  }
}

template <MaskOptions options, class Scalar>
auto causal_mask([[maybe_unused]] const MaskData<Scalar>& data, [[maybe_unused]] int sequence) {
  if constexpr (options.causal) {
    return attune::CausalMask{data.causal_offsets[sequence]};
  } else {
    return attune::NoMask{};
  }
}

template <MaskOptions options, int kv_len, class Scalar>
auto padding_mask([[maybe_unused]] const MaskData<Scalar>& data, [[maybe_unused]] int sequence) {
  if constexpr (options.padding) {
    attune::KeyPaddingMask<kv_len> mask;
    if (data.lengths != nullptr) {
      expect_ok(mask.set_length(data.lengths[sequence]));
    } else {
      bool valid[kv_len];
      for (int key = 0; key < kv_len; ++key) valid[key] = data.valid[sequence * kv_len + key];
      mask.set_valid(valid);
    }
    return mask;
  } else {
    return attune::NoMask{};
  }
}

template <MaskOptions options, int seq_len, int kv_len, class Scalar>
auto additive_mask([[maybe_unused]] const MaskData<Scalar>& data, [[maybe_unused]] int sequence) {
  if constexpr (options.additive_heads > 0) {
    constexpr int kRows = options.additive_heads * seq_len;
    return attune::AdditiveMask<Scalar, seq_len, kv_len, options.additive_heads>(
        attune::MatrixView<const Scalar, kRows, kv_len>(data.additive + sequence * kRows * kv_len));
  } else {
    return attune::NoMask{};
  }
}

/// The mask of one sequence of the batch; NoMask when the case has none.
template <MaskOptions options, int seq_len, int kv_len, class Scalar>
auto case_mask(const MaskData<Scalar>& data, int sequence) {
  return both(causal_mask<options>(data, sequence),
              both(padding_mask<options, kv_len>(data, sequence),
                   additive_mask<options, seq_len, kv_len>(data, sequence)));
}

}  // namespace conformance
