// Multi-head attention: output, weights and every gradient, sequence by sequence over the batch.
#pragma once

#include "case_mask.hpp"

namespace conformance {

template <class Scalar>
struct MhaData {
  int batch;
  const Scalar* parameters;  // query, key, value, output; each weight [in, out], then bias
  const Scalar* query;       // [batch, seq_len, d_model]
  const Scalar* key;         // [batch, kv_len, d_key]; none in self-attention
  const Scalar* value;       // [batch, kv_len, d_value]; none in self-attention
  const Scalar* grad_out;    // [batch, seq_len, d_out]
  MaskData<Scalar> mask;
};

template <attune::AttentionShape shape, bool self_attention, MaskOptions options, class Scalar>
void mha_case(const MhaData<Scalar>& data) {
  using Layer = attune::MultiHeadAttention<shape, Scalar>;
  static check::LayerMemory<Layer> memory;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = memory;
  static typename Layer::Input d_query;
  static typename Layer::KeyInput d_key;
  static typename Layer::ValueInput d_value;

  load(parameters, data.parameters);
  attune::set_zero(gradients);
  for (int i = 0; i < data.batch; ++i) {
    const attune::ConstView<typename Layer::Input> query(data.query + i * Layer::Input::size);
    const attune::ConstView<typename Layer::Output> dy(data.grad_out + i * Layer::Output::size);
    const auto mask = case_mask<options, shape.seq_len, shape.kv_len>(data.mask, i);
    if constexpr (self_attention) {
      attune::infer<Layer>(parameters, query, y, inference_scratch, mask);
      report(y, "out_inference");
      attune::forward<Layer>(parameters, query, y, tape, scratch, mask);
      report(y, "out");
      report(tape.weights, "attn");
      attune::backward<Layer>(parameters, query, tape, dy, d_query, gradients, scratch, mask);
    } else {
      const attune::ConstView<typename Layer::KeyInput> key(data.key + i * Layer::KeyInput::size);
      const attune::ConstView<typename Layer::ValueInput> value(data.value + i * Layer::ValueInput::size);
      attune::infer<Layer>(parameters, query, key, value, y, inference_scratch, mask);
      report(y, "out_inference");
      attune::forward<Layer>(parameters, query, key, value, y, tape, scratch, mask);
      report(y, "out");
      report(tape.weights, "attn");
      attune::backward<Layer>(parameters, query, key, value, tape, dy, d_query, d_key, d_value, gradients,
                              scratch, mask);
      report(d_key, "grad.key");
      report(d_value, "grad.value");
    }
    report(d_query, "grad.query");
  }
  report_set(gradients, "grad.");
}

}  // namespace conformance
