// Reads handwritten digits with parameters that were trained elsewhere, in PyTorch or on another target: a
// .safetensors file, which is in flash as it is. Where the file carries logits, they are compared. It is also
// what a board gets that has no room to train.
//
//   --images N    the first N test images only
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <arguments.hpp>

#include <digits_weights.hpp>

#include "evaluation.hpp"
#include "state_dict.hpp"

namespace {

using digits::Model;

constexpr attune::MemoryReport kMemory = [] {
  attune::MemoryReport memory = attune::inference_memory<Model>();
  memory.parameters = 0;  // which are in flash
  return memory;
}();
static_assert(kMemory.total() <= 9 * 1024);  // the RAM contract, checked by the compiler

constexpr auto& kParameters = digits::kParametersInFlash<digits_weights>;
constexpr const float* kExpected = digits::kLogitsInFlash<digits_weights>;
constexpr int kCompared = digits::kComparedImages<digits_weights>;
static_assert(kCompared <= digits::kTestImages, "digits: the file has logits of more images than there are");

Model::InferenceScratch scratch;
digits::Image image;
Model::Output logits;
digits::Evaluation evaluation;
float largest_difference;  // of logits to the file's

// Of a NaN it is one, and stays one.
void compare(int image_index) {
  if (image_index >= kCompared) return;
  for (int c = 0; c < digits::kClasses; ++c) {
    const float expected = kExpected[image_index * digits::kClasses + c];
    const float difference = std::abs(logits(0, c) - expected);
    if (!(difference <= largest_difference) && largest_difference == largest_difference)
      largest_difference = difference;
  }
}

}  // namespace

int main() {
  const int images = std::min(port::argument("--images", digits::kTestImages), digits::kTestImages);
  port::print("digits on ", port::name(), ": ", digits::kParameters, " trained parameters in flash, d_model ",
              digits::kWidth, ", heads ", digits::kEncoder.attention.num_heads, ", blocks ", digits::kBlocks,
              "; ", images, " images\n");

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  digits::evaluate(
      images, image, logits, evaluation,
      [](const digits::Image& x, Model::Output& y) {
        Model::forward(kParameters, x, y, scratch);
        return attune::Status::kOk;
      },
      compare);
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  const std::uint64_t microseconds = port::microseconds() - start;

  port::print("the file of parameters, ", digits_weights::kSize, " bytes, is in flash\n");
  terminal::print_memory("inference", kMemory);
  digits::print(evaluation);
  const int compared = std::min(images, kCompared);
  if (compared > 0) {
    port::print("logits of ", compared, " images differ from those in the file by at most ",
                port::fixed(largest_difference, 9), '\n');
  }
  digits::print_result(evaluation);
  if (compared > 0) port::print(" logits_difference=", port::fixed(largest_difference, 9));
  digits::print_result_end(evaluation.instructions, attune::hash_bits(kParameters), kMemory.total(), stack,
                           heap_calls, microseconds);
  return 0;
}
