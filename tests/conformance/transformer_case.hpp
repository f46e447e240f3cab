// An encoder and a decoder: output and every gradient, sequence by sequence.
#pragma once

#include "case_mask.hpp"

namespace conformance {

template <class Scalar>
struct TransformerData {
  int batch;
  const Scalar* parameters;  // the encoder's, then the decoder's
  const Scalar* input;       // [batch, source_len + target_len, d_model]
  const Scalar* grad_out;
  MaskData<Scalar> source_mask;
  MaskData<Scalar> mask;
  MaskData<Scalar> memory_mask;
};

template <class Model, MaskOptions source_options, MaskOptions options, MaskOptions memory_options>
void transformer_case(const TransformerData<typename Model::Scalar>& data) {
  static check::LayerMemory<Model> memory;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = memory;
  static typename Model::Input dx;
  constexpr int kSource = Model::Encoder::Input::rows, kTarget = Model::Decoder::Input::rows;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  for (int i = 0; i < data.batch; ++i) {
    const attune::ConstView<typename Model::Input> x(data.input + i * Model::Input::size);
    const attune::ConstView<typename Model::Output> dy(data.grad_out + i * Model::Output::size);
    const attune::EncoderDecoderMask mask{
        case_mask<source_options, kSource, kSource>(data.source_mask, i),
        case_mask<options, kTarget, kTarget>(data.mask, i),
        case_mask<memory_options, kTarget, kSource>(data.memory_mask, i)};
    attune::infer<Model>(parameters, x, y, inference_scratch, mask);
    report(y, "out_inference");
    attune::forward<Model>(parameters, x, y, tape, scratch, mask);
    report(y, "out");
    attune::backward<Model>(parameters, x, tape, dy, dx, gradients, scratch, mask);
    report(dx, "grad.input");
  }
  report_set(gradients, "grad.");
}

}  // namespace conformance
