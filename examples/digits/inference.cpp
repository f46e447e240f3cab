// Reads handwritten digits with parameters that were trained elsewhere and are in flash: what a board gets
// that has no room to train. examples/run trains on the PC and writes trained_model.hpp.
//
//   --images N    the first N test images only
#include <arguments.hpp>

#include <trained_model.hpp>

#include "evaluation.hpp"

namespace {

using digits::Model;

constexpr attune::MemoryReport kMemory = [] {
  attune::MemoryReport memory = attune::inference_memory<Model>();
  memory.parameters = 0;  // which are in flash
  return memory;
}();
static_assert(kMemory.total() <= 9 * 1024);  // the RAM contract, checked by the compiler

constinit const auto parameters = attune::from_flat<Model::Parameters>(digits::kTrainedParameters);  // flash

Model::InferenceScratch scratch;
digits::Image image;
Model::Output logits;
digits::Evaluation evaluation;

}  // namespace

int main() {
  const int images = std::min(port::argument("--images", digits::kTestImages), digits::kTestImages);
  port::print("digits on ", port::name(), ": ", digits::kParameters, " trained parameters in flash, d_model ",
              digits::kWidth, ", heads ", digits::kEncoder.num_heads, ", blocks ", digits::kBlocks, "; ",
              images, " images\n");

  const std::size_t heap_calls_before = port::heap_calls();
  const std::uint64_t start = port::microseconds();
  port::paint_stack();
  digits::evaluate(images, image, logits, evaluation, [](const digits::Image& x, Model::Output& y) {
    Model::forward(parameters, x, y, scratch);
  });
  const std::size_t stack = port::stack_high_water();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  const std::uint64_t microseconds = port::microseconds() - start;

  port::print("the parameters, ", sizeof parameters, " bytes, are in flash\n");
  terminal::print_memory("inference", kMemory);
  digits::print(evaluation);
  digits::print_result(evaluation, digits::kTrainedSteps);
  digits::print_result_end(evaluation.instructions, attune::hash(parameters), kMemory.total(), stack,
                           heap_calls, microseconds);
  return 0;
}
