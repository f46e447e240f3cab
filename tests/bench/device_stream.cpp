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

void read(attune::Rng& rng) {
  const int id = static_cast<int>(rng.next() % bench::kVocabulary);
  if (bench::Stories::step(parameters, id, logits, cache, scratch) != attune::Status::kOk) port::exit(1);
}

}  // namespace

int main() {
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  for (const int position : bench::kPositions) {
    while (cache.tokens < static_cast<std::uint64_t>(position)) read(rng);
    port::begin_counting();
    read(rng);
    port::end_counting();
    port::print("stream.", position, ".instructions_per_mac ", bench::token_macs(position), '\n');
  }
  return 0;
}
