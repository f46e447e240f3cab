// Attention of argmax_copy while it is learned, for the picture: a line `frame STEP LOSS SOLVED WEIGHTS` for
// some steps. SOLVED counts 256 unseen sequences, WEIGHTS are 8 × 8 percentages for one of them, query by
// query.
#include <attune/attune.hpp>
#include <console.hpp>
#include <port.hpp>

#include "../../argmax_copy/task.hpp"

namespace {

using namespace argmax_copy;
constexpr int kTried = 256;

int count_solved() {
  attune::Rng unseen(99);
  Layer::Output output;
  int count = 0;
  for (int i = 0; i < kTried; ++i) {
    draw(unseen, example);
    count += trainer.predict(example.tokens, output) == attune::Status::kOk && solved(output, example.target);
  }
  return count;
}

bool print_frame(int step, float mean_loss) {
  const int count = count_solved();
  Layer::Output output;
  attune::Rng rng(3);
  draw(rng, example);
  if (trainer.predict(example.tokens, output) != attune::Status::kOk) return false;
  Layer::Weights weights;
  trainer.tape().average_weights(weights);
  port::print("frame ", step, ' ', port::fixed(mean_loss, 4), ' ', count);
  for (int i = 0; i < kShape.seq_len; ++i) {
    for (int j = 0; j < kShape.seq_len; ++j) port::print(' ', static_cast<int>(100 * weights(i, j) + 0.5f));
  }
  port::print('\n');
  return true;
}

}  // namespace

int main() {
  trainer.initialize(attune::XavierUniform{}, attune::Rng(1));
  attune::Rng rng(2), first(3);
  draw(first, example);
  port::print("memory ", kMemory.parameters, ' ', kMemory.gradients, ' ', kMemory.moments, ' ', kMemory.tape,
              ' ', kMemory.scratch + kMemory.state, ' ', kMemory.inputs, '\n');
  port::print("token ", largest_token(example.tokens), '\n');
  float mean_loss = 0;
  for (int step = 0, next = 0; step <= kSteps; ++step) {
    if (step == next || step == kSteps) {
      if (!print_frame(step, mean_loss)) return 1;
      next = step < 10 ? 10 : step + (step < 100 ? 15 : step < 400 ? 50 : step < 1600 ? 200 : 400);
    }
    if (step == kSteps) break;
    const auto result = take_step(rng, options_of(step));
    if (!result.ok()) return 2;
    const float loss = result.loss * (kDeviation * kDeviation);
    mean_loss = step == 0 ? loss : mean_loss + (loss - mean_loss) * 0.05f;
  }
  port::print("parameters ", port::hex8(attune::hash_bits(trainer.parameters())), '\n');
  return 0;
}
