// The training of argmax_copy as a WebAssembly module for page.html: what the page asks of it. The module has
// one memory of fixed size, in which nothing is ever allocated, and imports nothing.
#include <limits>

#include "task.hpp"

// The linker's: behind the stack, constants and statics.
extern "C" char __heap_base;  // NOLINT: a reserved name

namespace {

using namespace argmax_copy;

attune::Rng rng(2);
Layer::Output output;

// What the page has to know of the module, as 32-bit words, in the order in which it reads them.
struct Facts {
  std::uint32_t seq_len = kShape.seq_len, d_model = kShape.d_model, num_heads = kShape.num_heads;
  std::uint32_t steps = kSteps, batch = kBatch, unseen = kUnseen;
  std::uint32_t stack = ATTUNE_STACK_BYTES;
  std::uint32_t parameters = kMemory.parameters, gradients = kMemory.gradients, moments = kMemory.moments,
                tape = kMemory.tape, scratch = kMemory.scratch, inputs = kMemory.inputs,
                state = kMemory.state;
};
constexpr Facts kFacts;

}  // namespace

#define ATTUNE_EXPORT(name) extern "C" [[clang::export_name(#name)]]

ATTUNE_EXPORT(facts) const Facts* facts() { return &kFacts; }

// The end of the memory that the program takes.
ATTUNE_EXPORT(end_of_data) const char* end_of_data() { return &__heap_base; }

ATTUNE_EXPORT(initialize) void initialize() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  rng = attune::Rng(2);
}

// Step number `step`, at `factor` times the schedule's learning rate. Its loss in the units of the entries,
// NaN if it was refused.
ATTUNE_EXPORT(take_step) float take_step_of(int step, float factor) {
  attune::AdamW::Options options = options_of(step);
  options.learning_rate *= factor;
  const Trainer::Result result = take_step(rng, options);
  return result.ok() ? result.loss * (kDeviation * kDeviation) : std::numeric_limits<float>::quiet_NaN();
}

// How many of the first `count` unseen sequences are solved.
ATTUNE_EXPORT(count_solved) int count_solved(int count) {
  attune::Rng unseen(99);
  int number = 0;
  for (int sequence = 0; sequence < count; ++sequence) {
    draw(unseen, example);
    const bool predicted = trainer.predict(example.tokens, output) == attune::Status::kOk;
    number += predicted && solved(output, example.target);
  }
  return number;
}

// Draws a sequence and predicts it; the views below are of that one. Returns the token to copy.
ATTUNE_EXPORT(predict) int predict(std::uint32_t seed) {
  attune::Rng of_sequence(seed);
  draw(of_sequence, example);
  const bool predicted = trainer.predict(example.tokens, output) == attune::Status::kOk;
  return predicted ? largest_token(example.tokens) : -1;
}

// [seq_len, d_model], in units of kDeviation around kMean
ATTUNE_EXPORT(tokens) const float* tokens() { return example.tokens.values; }
ATTUNE_EXPORT(output) const float* predicted() { return output.values; }
// [num_heads, seq_len, seq_len]
ATTUNE_EXPORT(weights) const float* weights() { return trainer.tape().head_weights(0).data; }

ATTUNE_EXPORT(parameters_hash) std::uint32_t parameters_hash() {
  return attune::hash_bits(trainer.parameters());
}
