// A model that is not one layer after the other, written by hand: a decoder that looks at what an encoder
// made of another sequence. What it names is all that a Trainer asks of a model.
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

constexpr int kSource = 4, kTarget = 3, kWidth = 4, kClasses = 2;
constexpr attune::EncoderLayerShape kEncoder{
    .attention = {.seq_len = kSource, .d_model = kWidth, .num_heads = 2}, .d_ff = 5};
constexpr attune::DecoderLayerShape kDecoder{
    .attention = {.seq_len = kTarget, .d_model = kWidth, .num_heads = 2}, .d_ff = 5, .memory_len = kSource};

template <class ScalarType>
struct Translator {
  using Scalar = ScalarType;
  using Encoder = attune::EncoderLayer<kEncoder, Scalar>;
  using Decoder = attune::DecoderLayer<kDecoder, Scalar>;
  using Head = attune::Linear<attune::LinearShape{kTarget, kWidth, kClasses}, Scalar>;
  using Input = attune::Tensor<Scalar, kSource + kTarget, kWidth>;  // the source, and below it the target
  using Output = typename Head::Output;

  struct Parameters {
    typename Encoder::Parameters encoder;
    typename Decoder::Parameters decoder;
    typename Head::Parameters head;
    ATTUNE_FIELDS(Set(encoder), Set(decoder), Set(head))
  };
  struct Tape {
    typename Encoder::Tape encoder;
    typename Encoder::Output memory;
    typename Decoder::Tape decoder;
    typename Decoder::Output decoded;
  };
  struct Scratch {
    union {  // never two of them at once
      typename Encoder::Scratch encoder;
      typename Decoder::Scratch decoder;
      typename Head::Scratch head;
    };
    typename Encoder::Output d_memory;
    typename Decoder::Output d_decoded;
  };

  static auto source(auto x) { return x.template rows_at<kSource>(0); }
  static auto target(auto x) { return x.template rows_at<kTarget>(kSource); }

  static void forward(const Parameters& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      Tape& tape, Scratch& scratch) {
    Encoder::forward(parameters.encoder, source(x), tape.memory, tape.encoder, scratch.encoder);
    Decoder::forward(parameters.decoder, target(x), tape.memory, tape.decoded, tape.decoder, scratch.decoder);
    Head::forward(parameters.head, tape.decoded, y);
  }

  static void backward(const Parameters& parameters, attune::ConstView<Input> x, Tape& tape,
                       attune::ConstView<Output> dy, auto&& dx, Parameters& gradients, Scratch& scratch) {
    Head::backward(parameters.head, tape.decoded, {}, dy, scratch.d_decoded, gradients.head, scratch.head);
    const auto [d_source, d_target] = parts(dx);
    Decoder::backward(parameters.decoder, target(x), tape.memory, tape.decoder, scratch.d_decoded, d_target,
                      scratch.d_memory, gradients.decoder, scratch.decoder);
    Encoder::backward(parameters.encoder, source(x), tape.encoder, scratch.d_memory, d_source,
                      gradients.encoder, scratch.encoder);
  }

  struct InferenceScratch {
    Tape tape;
    Scratch scratch;
  };
  static void forward(const Parameters& parameters, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch& scratch) {
    forward(parameters, x, y, scratch.tape, scratch.scratch);
  }

 private:
  // Where the gradients of the two parts of the input go: nowhere, or to theirs of dx.
  static std::pair<attune::NoGradient, attune::NoGradient> parts(attune::NoGradient) { return {}; }
  static auto parts(attune::View<Input> dx) { return std::pair(source(dx), target(dx)); }
};

}  // namespace

TEST(HandWrittenModel, gradients_are_derivatives) { check::check_layer_gradients<Translator<double>>(-1, 1); }

TEST(HandWrittenModel, is_trained_and_reported_as_any_other) {
  using Model = Translator<float>;
  using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 2>;
  static_assert(Trainer::memory().object() == sizeof(Trainer));
  static_assert(Trainer::memory().scratch ==
                sizeof(Model::Decoder::Scratch) + sizeof(Model::Encoder::Output) +
                    sizeof(Model::Decoder::Output));  // the encoder's fits into the decoder's
  static Trainer trainer;
  attune::Rng rng(3);
  trainer.initialize(attune::XavierUniform{}, rng);
  static Trainer::BatchInput inputs;
  static Trainer::BatchTarget targets;
  check::fill(inputs, rng);
  check::fill(targets, rng);
  const float before = trainer.step(inputs, targets, {.learning_rate = 0.01f}).loss;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(trainer.step(inputs, targets, {.learning_rate = 0.01f}).ok());
  EXPECT_LT(trainer.step(inputs, targets, {.learning_rate = 0.01f}).loss, 0.2f * before);
}
