// A whole classifier, trained on one batch: losses, logits, gradients of the first step and the parameters at
// the end.
//
//   logits = head(mean over tokens of norm(encoder(embed(x) + positions)))
#pragma once

#include "report.hpp"

namespace conformance {

struct ClassifierShape {
  attune::EncoderLayerShape layer;
  int layers;
  int features;
  int classes;
};

template <ClassifierShape shape, class Scalar, int tokens = shape.layer.attention.seq_len,
          int width = shape.layer.attention.d_model>
using Classifier =
    attune::Sequential<attune::Linear<attune::LinearShape{tokens, shape.features, width}, Scalar>,
                       attune::LearnedPositions<attune::PositionShape{tokens, width}, Scalar>,
                       attune::Repeat<shape.layers, attune::EncoderLayer<shape.layer, Scalar>>,
                       attune::LayerNorm<attune::NormShape{tokens, width, shape.layer.epsilon}, Scalar>,
                       attune::Pooling<attune::PoolingShape{tokens, width}, Scalar>,
                       attune::Linear<attune::LinearShape{1, width, shape.classes}, Scalar>>;

template <class Scalar>
struct TrainData {
  typename attune::Adam<attune::AdamVariant{}, Scalar>::Options options;
  int steps;
  int batch;
  const Scalar* parameters;
  const Scalar* inputs;  // [batch, len, features]
  const int* targets;    // [batch]
};

template <ClassifierShape shape, class Scalar>
void train_case(const TrainData<Scalar>& data) {
  using Model = Classifier<shape, Scalar>;
  using Optimizer = attune::Adam<attune::AdamVariant{}, Scalar>;
  static typename Model::Parameters parameters, gradients;
  static typename Optimizer::template Moments<typename Model::Parameters> moments;
  static typename Model::Tape tape;
  static typename Model::Scratch scratch;
  static typename Model::Output logits;

  load(parameters, data.parameters);
  moments.reset();  // cases of the same shape share them
  for (int step = 0; step <= data.steps; ++step) {
    attune::set_zero(gradients);
    Scalar loss = 0;
    for (int i = 0; i < data.batch; ++i) {
      const attune::ConstView<typename Model::Input> x(data.inputs + i * Model::Input::size);
      attune::forward<Model>(parameters, x, logits, tape, scratch);
      if (step == 0) report(logits, "logits_step0");
      if (step == data.steps) report(logits, "logits_final");
      const auto result =
          attune::CrossEntropy<>::forward(logits, std::span<const int, 1>(data.targets + i, 1), logits,
                                          Scalar(1) / static_cast<Scalar>(data.batch));
      expect_ok(result.status);
      loss += result.loss;
      attune::backward<Model>(parameters, x, tape, logits, attune::NoGradient{}, gradients, scratch);
    }
    if (step == 0) report_set(gradients, "grad0.");
    if (step == data.steps) break;
    report(&loss, 1, "losses");
    expect_ok(Optimizer::step(parameters, gradients, moments, data.options));
  }
  report_set(parameters, "param_final.");
}

}  // namespace conformance
