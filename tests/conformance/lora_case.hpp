// Self-attention with factors of low rank beside constant weights: output and the gradients of what is
// trained.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct LoraData {
  const Scalar* constants;  // query, key, value, output; each weight [in, out], then bias
  const Scalar* trained;    // of the same, A [in, r], B [r, out] and bias, where they are trained
  const Scalar* input;
  const Scalar* grad_out;
};

template <class Layer>
struct Constants {
  static inline typename Layer::Parameters parameters;
};

template <attune::AttentionShape shape, attune::LowRank low_rank, class Mask, class Scalar>
void lora_case(const LoraData<Scalar>& data) {
  using Attention = attune::MultiHeadAttention<shape, Scalar>;
  using Layer = attune::Adapted<Attention, Constants<Attention>::parameters, low_rank>;
  static check::LayerMemory<Layer> memory;
  auto& [trained, gradients, y, tape, scratch, inference_scratch] = memory;
  static typename Layer::Input dx;
  const attune::ConstView<typename Layer::Input> x(data.input);

  load(Constants<Attention>::parameters, data.constants);
  load(trained, data.trained);
  attune::infer<Layer>(trained, x, y, inference_scratch, Mask{});
  report(y, "out_inference");
  attune::forward<Layer>(trained, x, y, tape, scratch, Mask{});
  report(y, "out");
  attune::set_zero(gradients);
  attune::backward<Layer>(trained, x, tape, attune::ConstView<typename Layer::Output>(data.grad_out), dx,
                          gradients, scratch, Mask{});
  report(dx, "grad.input");
  report_set(gradients, "grad.");
}

}  // namespace conformance
