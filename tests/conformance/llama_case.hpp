// A language model of Llama's blocks whose head is its embedding: logits and all gradients.
#pragma once

#include "report.hpp"

namespace conformance {

template <class Scalar>
struct LlamaData {
  const Scalar* parameters;  // in the order of the set; weights [in, out]
  const int* ids;
  const Scalar* grad_out;
};

template <attune::AttentionShape shape, int vocabulary, int d_ff, int layers, class Scalar>
void llama_case(const LlamaData<Scalar>& data) {
  using Norm = attune::RmsNorm<attune::NormShape{shape.seq_len, shape.d_model}, Scalar>;
  using Network =
      attune::SwiGlu<attune::FeedForwardShape{
                         .rows = shape.seq_len, .d_model = shape.d_model, .d_ff = d_ff, .bias = false},
                     Scalar>;
  using Block = attune::EncoderLayerOf<attune::MultiHeadAttention<shape, Scalar>, Network, Norm,
                                       attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>;
  using Tokens = attune::Embedding<attune::EmbeddingShape{shape.seq_len, vocabulary, shape.d_model}, Scalar>;
  using Model = attune::Tied<Tokens, attune::Sequential<attune::Repeat<layers, Block>, Norm>>;
  static check::LayerMemory<Model> memory;
  auto& [parameters, gradients, y, tape, scratch, inference_scratch] = memory;
  const attune::ConstView<typename Model::Input> ids(data.ids);

  load(parameters, data.parameters);
  expect_ok(Model::forward(parameters, ids, y, inference_scratch));
  report(y, "out_inference");
  expect_ok(Model::forward(parameters, ids, y, tape, scratch));
  report(y, "out");
  attune::set_zero(gradients);
  Model::backward(parameters, ids, tape, attune::ConstView<typename Model::Output>(data.grad_out),
                  attune::NoGradient{}, gradients, scratch);
  report_set(gradients, "grad.");
}

}  // namespace conformance
