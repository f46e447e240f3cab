// What every drawn program does (tests/fuzz/draw writes them): it is a model of the zoo (tests/zoo.hpp),
// which it trains and runs in several ways that promise the same bits. Results also go to the output, where
// `draw` compares compilers and boards.
//
//   # 17 floats 1a2b3c4d           a result: the program's seed, the precision, a hash
//   FAILED 17 floats, lockstep: …  it has other bits than it promises
#pragma once

#include "console.hpp"
#include "zoo/inference.hpp"

#ifdef ATTUNE_DRAWN_ON_HOST
#include "zoo/threads.hpp"
#endif

namespace drawn {

using namespace attune;  // NOLINT: for the programs
using zoo::Execution, zoo::Inference, zoo::Key, zoo::Masking, zoo::Outcome, zoo::Precision, zoo::Way;

inline int failed = 0, compared = 0;

/// Sets constants of a model, which may have fewer bits, from drawn floats.
template <class Layer, class Constants>
void draw_constants(Constants& constants, std::uint64_t seed) {
  static typename Layer::Parameters floats;
  Rng rng(seed);
  initialize(floats, XavierUniform{}, rng);
  if constexpr (std::is_same_v<Constants, typename Layer::Parameters>) {
    constants = floats;
  } else if (quantize(floats, constants) != Status::kOk) {
    port::print("no constants\n");
  }
}

template <Key key>
inline constexpr const char* kPrecision = zoo::kPrecisions[static_cast<int>(key.precision)];

template <Key key>
void say(int seed, const Outcome& outcome) {
  port::print("# ", seed, ' ', kPrecision<key>, ' ', port::hex8(outcome.hash), '\n');
}
/// Compares a run with the one whose bits it promises. A run that ended with an error has no bits.
template <Key key>
void expect_same(int seed, const char* way, const Outcome& outcome, const Outcome& promised) {
  ++compared;
  if (promised.status != Status::kOk && outcome.status != Status::kOk) return;
  if (outcome.hash == promised.hash && outcome.status == promised.status) return;
  ++failed;
  port::print("FAILED ", seed, ' ', kPrecision<key>, ", ", way, ": ", port::hex8(outcome.hash), " status ",
              static_cast<int>(outcome.status), ", promised ", port::hex8(promised.hash), " status ",
              static_cast<int>(promised.status), '\n');
}

template <class Entry, Execution execution>
void expect_training(int seed, [[maybe_unused]] const Outcome& promised) {
  constexpr const char* kWays[] = {"step",        "accumulated",    "slices",  "in backward",
                                   "in lockstep", "shared buffers", "threads", "twin"};
  constexpr const char* kWay = kWays[static_cast<int>(execution.way)];
  if constexpr (execution.way != Way::kThreads) {
    expect_same<execution.key>(seed, kWay, zoo::train<Entry, execution>(), promised);
  } else {
#ifdef ATTUNE_DRAWN_ON_HOST
    expect_same<execution.key>(seed, kWay, zoo::train_on_threads<Entry, execution>(), promised);
#endif
  }
}
/// Trains in these ways, one of which may resume another trainer's state.
template <class Entry, Key key, bool resumed, Way... ways>
void compare_trainings(int seed) {
  const Outcome promised = zoo::train<Entry, Execution{key}>();
  say<key>(seed, promised);
  (expect_training<Entry, Execution{key, ways, resumed}>(seed, promised), ...);
  if constexpr (key.masking == Masking::kPadding && Entry::kTakesLengths) {
    // Behind a length are no queries. Those of a padding mask may see nothing but the padding among ids.
    if (promised.status != Status::kPaddingToken) {
      expect_training<Entry, Execution{{key.precision, Masking::kLength, key.batch}}>(seed, promised);
    }
  }
}
/// Runs a causal model on whole sequences, and token by token.
template <class Entry, Key key>
void compare_streams(int seed) {
  const Outcome promised = zoo::infer_each<Entry, key, Inference::kWhole>();
  say<key>(seed, promised);
  expect_same<key>(seed, "tokens", zoo::infer_each<Entry, key, Inference::kTokens>(), promised);
  expect_same<key>(seed, "several tokens", zoo::infer_each<Entry, key, Inference::kSeveralTokens>(),
                   promised);
}

}  // namespace drawn
