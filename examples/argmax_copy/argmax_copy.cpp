// Trains one attention layer from scratch, on a PC or on a microcontroller, to find the token whose first
// feature is the largest and copy that token to every output row.
#include <arguments.hpp>
#include <attune/attune.hpp>
#include <instructions.hpp>

#include "../terminal.hpp"
#include "task.hpp"

namespace {

using namespace argmax_copy;

// Without an FPU an emulated board takes minutes for all steps, so it takes the first of them, of the same
// schedule.
#if defined(__SOFTFP__) || defined(__riscv_float_abi_soft)
constexpr int kDefaultSteps = kSmall ? 400 : kEntries <= 128 ? 100 : 25;
#else
constexpr int kDefaultSteps = kSteps;
#endif

terminal::LossCurve<60> curve;

struct Training {
  float first_loss;
  float last_loss;  // smoothed over about 50 steps
  attune::Status status;
  std::uint64_t instructions;  // of the first step; 0 where the program cannot tell
};

Training train(attune::Rng& rng, int steps) {
  Training training{};
  terminal::Progress progress(steps);
  for (int step = 0; step < steps; ++step) {
    const attune::AdamW::Options options = options_of(step);
    if (step == 0) port::begin_counting();
    const Trainer::Result result = take_step(rng, options);
    if (step == 0) training.instructions = port::end_counting();
    if (training.status = result.status; !result.ok()) return training;
    const float loss = result.loss * (kDeviation * kDeviation);  // in the units of the entries
    if (step == 0) training.first_loss = training.last_loss = loss;
    training.last_loss += (loss - training.last_loss) * 0.02f;
    curve.add(step, steps, loss);
    progress.show(step + 1, training.last_loss);
  }
  return training;
}

struct Evaluation {
  int solved;
  std::uint64_t instructions;  // of the first inference
};

Evaluation evaluate(attune::Rng rng) {
  Evaluation evaluation{};
  for (int sequence = 0; sequence < kUnseen; ++sequence) {
    Layer::Output output;
    draw(rng, example);
    if (sequence == 0) port::begin_counting();
    const attune::Status status = predict(example.tokens, output);
    if (sequence == 0) evaluation.instructions = port::end_counting();
    evaluation.solved += status == attune::Status::kOk && solved(output, example.target);
  }
  return evaluation;
}

void print_example_attention() {
  Layer::Output output;
  Layer::Weights weights;
  attune::Rng rng(3);
  draw(rng, example);
  if (predict(example.tokens, output) != attune::Status::kOk) return;
  trainer.tape().average_weights(weights);
  port::print("attention of an unseen sequence", kShape.num_heads > 1 ? ", mean of the heads" : "",
              "; the token to copy is key ", largest_token(example.tokens), '\n');
  terminal::print_attention(attune::as_const(attune::view(weights)));
}

}  // namespace

int main() {
  const int wanted = port::argument("--steps", kDefaultSteps);
  const int steps = wanted < 1 ? 1 : wanted < kSteps ? wanted : kSteps;
  port::print("argmax_copy on ", port::name(), ": seq_len ", kShape.seq_len, ", d_model ", kShape.d_model,
              ", heads ", kShape.num_heads, "; ", steps, " steps of ", kBatch, " sequences\n");
  start_cores();
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  attune::Rng rng(2);

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  const Training training = train(rng, steps);
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  const auto milliseconds = static_cast<std::uint32_t>((port::microseconds() - start) / 1000);
  if (training.status != attune::Status::kOk) {
    port::print("training stopped: ", attune::message(training.status), '\n');
    return 1;
  }

  const Evaluation evaluation = evaluate(attune::Rng(99));
  curve.print();
  print_example_attention();
  terminal::print_memory("training", kMemory);
  terminal::print_memory("inference alone, parameters included", attune::inference_memory<Layer>());
  port::print("solved ", evaluation.solved, " of ", kUnseen, " unseen sequences\n");
  port::print("result example=argmax_copy target=", port::name(), " seq_len=", kShape.seq_len,
              " d_model=", kShape.d_model, " heads=", kShape.num_heads, " steps=", steps,
              " loss_first=", port::fixed(training.first_loss, 6),
              " loss_last=", port::fixed(training.last_loss, 6),
              " solved=", port::fixed(static_cast<float>(evaluation.solved) / kUnseen, 4),
              " ram_bytes=", kMemory.total(), " stack_bytes=", stack, " heap_calls=", heap_calls,
              " parameters_hash=", port::hex8(attune::hash_bits(trainer.parameters())));
  terminal::print_instructions("step", training.instructions);
  terminal::print_instructions("inference", evaluation.instructions);
  port::print(" seconds=", milliseconds / 1000, '.', milliseconds % 1000 / 100, milliseconds % 100 / 10,
              milliseconds % 10, '\n');
  return 0;
}
