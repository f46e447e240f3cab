// The gate of SwiGlu alone: silu(gate) ∘ up.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct SwiGluData {
  const Scalar* gate;
  const Scalar* up;
};

template <int size, class Scalar>
void swiglu_case(const SwiGluData<Scalar>& data) {
  static attune::Tensor<Scalar, 1, size> y;
  attune::kernels::gate<attune::Activation::kSilu>(size, data.gate, data.up, y.data());
  report(y, "out");
}

}  // namespace conformance
