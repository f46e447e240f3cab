// Instruction counts of a token of a stream, on an emulated board, as device.cpp prints them.
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

#include "stories.hpp"

namespace {

bench::Stories::Parameters parameters;
bench::StoriesCache cache;
bench::StoriesCache::Scratch<> scratch;
attune::Tensor<float, 1, bench::kVocabulary> logits;

}  // namespace

int main() {
  attune::Rng rng(1);
  attune::initialise(parameters, attune::XavierUniform{}, rng);
  // Keys and values of the tokens before are zeros, whose arithmetic takes as many instructions as any.
  for (const int position : bench::kPositions) {
    cache.tokens = static_cast<std::uint64_t>(position);
    port::begin_counting();
    const attune::Status status = bench::Stories::step(parameters, 1, logits, cache, scratch);
    port::end_counting();
    if (status != attune::Status::kOk) port::exit(1);
    port::print("stream.", position, ".instructions_per_mac ", bench::token_macs(position), '\n');
  }
  return 0;
}
