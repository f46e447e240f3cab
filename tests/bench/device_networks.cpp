// Instruction counts of small networks that other libraries for microcontrollers train, on an emulated board,
// as device.cpp prints them: an MLP of 64-64-64-8 with Adam, a step on 32 rows, on one row, and on a batch of
// 32 sequences of one row; and attention of 99 tokens, 64 features, one head.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

namespace {

using port::begin_counting;
using port::end_counting;

template <class Tensor>
void fill(Tensor& tensor, attune::Rng& rng) {
  for (int i = 0; i < tensor.size; ++i) tensor.data()[i] = rng.uniform(-1.0f, 1.0f);
}

template <int rows>
using Mlp = attune::Sequential<attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 64}>,
                               attune::ActivationLayer<attune::Activation::kRelu, rows, 64>,
                               attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 64}>,
                               attune::ActivationLayer<attune::Activation::kRelu, rows, 64>,
                               attune::Linear<attune::LinearShape{.rows = rows, .d_in = 64, .d_out = 8}>>;

// A step of the trainer: forward, mean squared error, backward and Adam.
template <int rows, int batch>
[[gnu::noinline]] void measure_mlp(const char* name) {
  using Trainer = attune::Trainer<Mlp<rows>, attune::MeanSquaredError, attune::Adam<>, batch>;
  static Trainer trainer;
  static typename Trainer::BatchInput x;
  static typename Trainer::BatchTarget target;
  attune::Rng rng(1);
  trainer.initialize(attune::XavierUniform{}, rng);
  fill(x, rng);
  fill(target, rng);
  begin_counting();
  const attune::Status status =
      trainer.step(x, target, {.learning_rate = 1e-3f, .weight_decay = 0}, attune::NoClipping{}).status;
  end_counting();
  if (status != attune::Status::kOk) port::exit(1);
  port::print("mlp.", name, ".instructions 1\n");
}

using Attention =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 99, .d_model = 64, .num_heads = 1}>;
Attention::Parameters parameters, gradients;
Attention::Tape tape;
Attention::Scratch scratch;
Attention::Input attention_x, dx;
Attention::Output y, dy;

// Training is forward and backward, with the gradient of the input and without an update.
[[gnu::noinline]] void measure_attention() {
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  fill(attention_x, rng);
  fill(dy, rng);
  begin_counting();
  Attention::forward(parameters, attention_x, y, tape, scratch);
  end_counting();
  port::print("attention99.forward.instructions 1\n");
  begin_counting();
  Attention::forward(parameters, attention_x, y, tape, scratch);
  Attention::backward(parameters, attention_x, tape, dy, dx, gradients, scratch);
  end_counting();
  port::print("attention99.training.instructions 1\n");
}

}  // namespace

int main() {
  measure_mlp<32, 1>("step");
  measure_mlp<1, 1>("sample");
  measure_mlp<1, 32>("batch");
  measure_attention();
  return 0;
}
