// Listens to a signal that never ends, and says at each token whether the last tone of a keyword sounds: a
// model in flash that base.cpp trained on a PC on windows. A token goes through it once, with a ring of the
// keys and values of the tokens before.
//
//   --tokens N    how long it listens
//   --seed N      of the signal
#include <algorithm>
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
static_assert(kMemory.total() <= 14 * 1024);  // the RAM contract, checked by the compiler

Cache cache;
Cache::Scratch<> scratch;
attune::Tensor<float, 1, kBands> token;
attune::Tensor<float, 1, 2> logits;

// What a device without a cache would compute at every token; here for comparison.
Model::Input window;
Model::Output logits_of_window;
Model::InferenceScratch window_scratch;

/// What was heard, and when it was noticed.
class Score {
 public:
  int keywords = 0, noticed = 0, at_once = 0, within_one = 0, false_alarms = 0;

  /// In a keyword's last tone, it is noticed once; an alarm that begins outside of one is false.
  void add(bool in_keyword, bool alarm) {
    if (in_keyword && since_ < 0) {
      ++keywords;
      unnoticed_ = true;
    }
    since_ = in_keyword ? since_ + 1 : -1;
    if (alarm && in_keyword && unnoticed_) {
      unnoticed_ = false;
      ++noticed;
      at_once += since_ == 0;
      within_one += since_ <= 1;
    }
    if (alarm && !in_keyword && !alarm_) ++false_alarms;
    alarm_ = alarm;
  }

 private:
  int since_ = -1;  // tokens since the last tone of a keyword began; -1: none sounds
  bool unnoticed_ = false, alarm_ = false;
};

struct Heard {
  Score score;
  Fnv1a logits_hash, hash_of_beginning;  // of all tokens; of the first kTokens
  std::uint64_t instructions = 0;        // 0 where the program cannot tell
};

Status listen(int tokens, Signal& signal, Heard& heard) {
  for (int t = 0; t < tokens; ++t) {
    const bool in_keyword = signal.next(token.values);
    port::begin_counting();
    const Status status = Model::step(kBase, token, logits, cache, scratch);
    heard.instructions += port::end_counting();
    if (status != Status::kOk) return status;
    heard.score.add(in_keyword, logits(0, 1) > logits(0, 0));
    heard.logits_hash.add(logits.values, 2);
    if (t >= kTokens) continue;
    heard.hash_of_beginning.add(logits.values, 2);
    std::copy(token.values, token.values + kBands, &window(t, 0));
  }
  return Status::kOk;
}

}  // namespace

int main() {
  const int tokens = std::max(port::argument("--tokens", 5000), kTokens);
  Signal signal(static_cast<std::uint64_t>(port::argument("--seed", 1)));
  Heard heard;
  port::print("spotter on ", port::name(), ": ", kParameters, " parameters in flash, d_model ", kWidth,
              ", blocks ", kBlocks, ", a ring of ", kWindow, " tokens; listens to ", tokens, '\n');

  const std::size_t heap_calls_before = port::heap_calls();
  port::paint_stack();
  const Status status = listen(tokens, signal, heard);
  const std::size_t stack = port::stack_high_water();
  if (status != Status::kOk) {
    port::print("stopped: ", attune::message(status), '\n');
    return 1;
  }
  port::begin_counting();
  attune::infer<Model>(kBase, window, logits_of_window, window_scratch, attune::CausalMask{});
  const std::uint64_t window_instructions = port::end_counting();
  const std::size_t heap_calls = port::heap_calls() - heap_calls_before;

  Fnv1a batch_hash;
  batch_hash.add(logits_of_window.values, 2 * kTokens);
  const bool same = batch_hash.value == heard.hash_of_beginning.value;
  const Score& score = heard.score;
  port::print("of ", score.keywords, " keywords it noticed ", score.noticed, ", ", score.at_once,
              " with the first token of the last tone, ", score.within_one - score.at_once,
              " with the second; false alarms ", score.false_alarms, '\n');
  port::print("logits of the first ", kTokens,
              " tokens, one after the other and in one go: ", same ? "the same bits\n" : "NOT the same\n");
  terminal::print_memory("listening, the parameters in flash", kMemory);
  port::print("result example=spotter target=", port::name(), " parameters=", kParameters, " tokens=", tokens,
              " keywords=", score.keywords, " noticed=", score.noticed, " at_once=", score.at_once,
              " within_one=", score.within_one, " false_alarms=", score.false_alarms);
  port::print(" logits_hash=", port::hex8(heard.logits_hash.value),
              " beginning_hash=", port::hex8(heard.hash_of_beginning.value),
              " batch_hash=", port::hex8(batch_hash.value));
  terminal::print_count(" instructions_per_token", heard.instructions / static_cast<std::uint64_t>(tokens));
  terminal::print_count(" window_instructions", window_instructions);
  port::print(" ram_bytes=", kMemory.total(), " cache_bytes=", sizeof cache, " stack_bytes=", stack,
              " heap_calls=", heap_calls, " base_bytes=", spotter_base::kSize, '\n');
  return same ? 0 : 1;
}
