// Listens to a signal that never ends, and says at each token whether the last tone of a keyword sounds: a
// model in flash that base.cpp trained on a PC on windows. A token goes through it once, with a ring of the
// keys and values of the tokens before.
//
//   --tokens N    how long it listens
//   --seed N      of the signal
#include <bit>
#include <cstdint>

#include <arguments.hpp>
#include <instructions.hpp>

#include <spotter_base.hpp>

#include "../fnv1a.hpp"
#include "../terminal.hpp"
#include "model.hpp"

namespace {

using namespace spotter;
using attune::Status;

constexpr auto& kBase = attune::kInFlash<Names, spotter_base>;
constexpr attune::CacheShape kRing{.window = kWindow};
using Cache = attune::KeyValueCache<Model, kRing>;
constexpr attune::MemoryReport kMemory = [] {
  attune::MemoryReport memory = attune::stream_memory<Model, kRing>();
  memory.parameters = 0;  // which are in flash
  return memory;
}();
static_assert(kMemory.total() <= 10 * 1024);  // the RAM contract, checked by the compiler

Cache cache;
Cache::Scratch<> scratch;
attune::Tensor<float, 1, kBands> token;
attune::Tensor<float, 1, 2> logits;

// What a device without a cache would compute at every token; here for comparison.
Model::Input window;
Model::Output logits_of_window;
Model::InferenceScratch window_scratch;

/// What was heard, and when it was noticed.
struct Score {
  int keywords = 0, noticed = 0, at_once = 0, within_one = 0, false_alarms = 0;
  int since = -1;  // tokens since the last tone of a keyword began; -1: none sounds
  bool noticed_this = false, alarm = false;

  void add(bool in_keyword, bool says_so) {
    if (in_keyword && since < 0) ++keywords, noticed_this = false;
    since = in_keyword ? since + 1 : -1;
    if (in_keyword && says_so && !noticed_this) {
      noticed_this = true;
      ++noticed;
      at_once += since == 0;
      within_one += since <= 1;
    }
    if (says_so && !alarm && !in_keyword && !noticed_this) ++false_alarms;
    if (!in_keyword && !says_so) noticed_this = false;
    alarm = says_so;
  }
};

}  // namespace

int main() {
  const int tokens = std::max(port::argument("--tokens", 5000), kTokens);
  const auto seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  port::print("spotter on ", port::name(), ": ", kParameters, " parameters in flash, d_model ", kWidth,
              ", blocks ", kBlocks, ", a ring of ", kWindow, " tokens; listens to ", tokens, "\n");
  const std::size_t heap_calls_before = port::heap_calls();
  port::paint_stack();
  Signal signal(seed);
  Score score;
  Fnv1a hash, hash_of_beginning;
  std::uint64_t instructions = 0;
  for (int t = 0; t < tokens; ++t) {
    const bool in_keyword = signal.next(token.values);
    port::begin_counting();
    const Status status = Model::step(kBase, token, logits, cache, scratch);
    instructions += port::end_counting();
    if (status != Status::kOk) return 1;
    score.add(in_keyword, logits(0, 1) > logits(0, 0));
    hash.add(logits.values, 2);
    if (t >= kTokens) continue;
    hash_of_beginning.add(logits.values, 2);
    std::copy(token.values, token.values + kBands, &window(t, 0));
  }
  const std::size_t stack = port::stack_high_water();
  Model::forward(kBase, window, logits_of_window, window_scratch, attune::CausalMask{});
  Fnv1a hash_in_one_go;
  hash_in_one_go.add(logits_of_window.values, 2 * kTokens);
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;
  (void)stack;
  (void)heap_calls;
  (void)instructions;
  port::print(score.keywords, " keywords, noticed ", score.noticed, ", at once ", score.at_once,
              ", within one ", score.within_one, ", false ", score.false_alarms, "; same ",
              hash_in_one_go.value == hash_of_beginning.value ? 1 : 0, "\n");
  return 0;
}
