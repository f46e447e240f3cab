// Encoder layers: output and, where the case has an output gradient, every gradient, sequence by sequence.
#pragma once

#include "case_mask.hpp"
#include "encoder_stack.hpp"

namespace conformance {

template <class Scalar>
struct EncoderData {
  int batch;
  const Scalar* parameters;  // layer after layer, then the final normalization
  const Scalar* src;         // [batch, seq_len, d_model]
  const Scalar* grad_out = nullptr;
  MaskData<Scalar> mask;
};

template <attune::EncoderLayerShape shape, int layers, bool final_norm, MaskOptions options, class Scalar>
void encoder_case(const EncoderData<Scalar>& data) {
  using Stack = EncoderStack<shape, layers, final_norm, Scalar>;
  static check::LayerMemory<Stack> of_stack;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = of_stack;
  static typename Stack::Input dx;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  for (int i = 0; i < data.batch; ++i) {
    const typename Stack::InputView x(data.src + i * Stack::Input::size);
    const auto mask = case_mask<options, shape.attention.seq_len, shape.attention.seq_len>(data.mask, i);
    Stack::forward(parameters, x, y, inference_scratch, mask);
    report(y, "out_inference");
    Stack::forward(parameters, x, y, tape, scratch, mask);
    report(y, "out");
    if (data.grad_out == nullptr) continue;
    const typename Stack::InputView dy(data.grad_out + i * Stack::Input::size);
    Stack::backward(parameters, x, tape, dy, dx, gradients, scratch, mask);
    report(dx, "grad.src");
  }
  if (data.grad_out != nullptr) report_set(gradients, "grad.");
}

}  // namespace conformance
