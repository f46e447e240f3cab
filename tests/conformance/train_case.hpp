// A whole classifier, trained on one batch: losses, logits, gradients of the first step and the parameters at
// the end.
//
//   logits = head(mean over tokens of norm(encoder(embed(x) + positions)))
#pragma once

#include "encoder_stack.hpp"
#include "report.hpp"

namespace conformance {

struct ClassifierShape {
  attune::EncoderLayerShape layer;
  int layers;
  int features;
  int classes;
};

template <ClassifierShape shape, class ScalarType>
struct Classifier {
  using Scalar = ScalarType;
  static constexpr int kTokens = shape.layer.attention.seq_len, kWidth = shape.layer.attention.d_model;
  using Embed = attune::Linear<attune::LinearShape{kTokens, shape.features, kWidth}, Scalar>;
  using Positions = attune::LearnedPositions<attune::PositionShape{kTokens, kWidth}, Scalar>;
  using Encoder = EncoderStack<shape.layer, shape.layers, true, Scalar>;  // its norm is the model's
  using Pool = attune::Pooling<attune::PoolingShape{kTokens, kWidth}, Scalar>;
  using Head = attune::Linear<attune::LinearShape{1, kWidth, shape.classes}, Scalar>;
  using Input = typename Embed::Input;
  using Output = typename Head::Output;

  struct Parameters {
    typename Embed::Parameters embed;
    typename Positions::Parameters positions;
    typename Encoder::Parameters encoder;
    typename Head::Parameters head;
    ATTUNE_FIELDS(Set(embed), Set(positions), Set(encoder), Set(head))
  };
  struct Tape {
    typename Positions::Input tokens;
    typename Encoder::Input encoded;
    typename Pool::Output pooled;
    typename Encoder::Tape encoder;
    typename Pool::Tape pool;
  };
  using Scratch = typename Encoder::Scratch;

  static void forward(const Parameters& parameters, attune::ConstView<Input> x, Output& logits, Tape& tape,
                      Scratch& scratch) {
    typename Positions::InferenceScratch no_positions;
    typename Pool::Scratch no_pool;
    Embed::forward(parameters.embed, x, tape.tokens);
    Positions::forward(parameters.positions, tape.tokens, tape.tokens, no_positions);
    Encoder::forward(parameters.encoder, tape.tokens, tape.encoded, tape.encoder, scratch, attune::NoMask{});
    Pool::forward({}, tape.encoded, tape.pooled, tape.pool, no_pool);
    Head::forward(parameters.head, tape.pooled, logits);
  }
  static void backward(const Parameters& parameters, attune::ConstView<Input> x, Tape& tape,
                       const Output& d_logits, Parameters& gradients, Scratch& scratch) {
    typename Pool::Parameters none;
    typename Pool::Scratch no_pool;
    Head::backward_parameters(tape.pooled, d_logits, gradients.head);
    Head::backward_input(parameters.head, d_logits, tape.pooled);
    Pool::backward(none, tape.encoded, tape.pool, tape.pooled, tape.encoded, none, no_pool);
    Encoder::backward(parameters.encoder, tape.tokens, tape.encoder, tape.encoded, tape.encoded,
                      gradients.encoder, scratch, attune::NoMask{});
    typename Positions::Scratch no_positions;
    Positions::backward(parameters.positions, tape.tokens, {}, tape.encoded, attune::NoGradient{},
                        gradients.positions, no_positions);
    Embed::backward_parameters(x, tape.encoded, gradients.embed);
  }
};

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
      Model::forward(parameters, x, logits, tape, scratch);
      if (step == 0) report(logits, "logits_step0");
      if (step == data.steps) report(logits, "logits_final");
      const auto result =
          attune::CrossEntropy<>::forward(logits, std::span<const int, 1>(data.targets + i, 1), logits,
                                          Scalar(1) / static_cast<Scalar>(data.batch));
      expect_ok(result.status);
      loss += result.loss;
      Model::backward(parameters, x, tape, logits, gradients, scratch);
    }
    if (step == 0) report_set(gradients, "grad0.");
    if (step == data.steps) break;
    report(&loss, 1, "losses");
    expect_ok(Optimizer::step(parameters, gradients, moments, data.options));
  }
  report_set(parameters, "param_final.");
}

}  // namespace conformance
