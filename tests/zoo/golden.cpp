// Trains the zoo, one sequence after the other, and compares with the recorded hashes. Prints a line for each
// key:
//
//   ok llama floats causal 18 1a2b3c4d
//
// ATTUNE_ZOO_MODELS: these models instead of all. ATTUNE_ZOO_EVERY_KEY: every precision, batch and mask
// instead of one.
#include "zoo/golden.hpp"
#include "console.hpp"
#include "zoo/inference.hpp"

namespace {

using namespace zoo;  // NOLINT: for the models
using enum Precision;

int passed = 0, failed = 0, left_out = 0;

void report(const char* model, const Key& key, const Outcome& outcome) {
  constexpr const char* kMasks[] = {"none", "causal", "padding"};
  const bool same = outcome.status == Status::kOk && outcome.hash == golden(model, key);
  ++(same ? passed : failed);
  port::print(same ? "ok " : "FAILED ", model, ' ', kPrecisions[static_cast<int>(key.precision)], ' ',
              kMasks[static_cast<int>(key.masking)], ' ', key.batch, ' ', port::hex8(outcome.hash));
  if (outcome.status != Status::kOk) port::print(": ", message(outcome.status));
  port::print('\n');
}

template <class Entry, Key key>
void run() {
  if constexpr ((Entry::kMasks & bit(key.masking)) != 0) {
    constexpr Execution kExecution{key, Way::kStep};
    if constexpr (key.precision == kInference || key.precision == kInt8Inference) {
      constexpr bool kExists =
          key.precision == kInference || (Entry::kStreams && key.masking == Masking::kCausal);
      if constexpr (kExists) report(Entry::kName, key, infer_each<Entry, key, Inference::kWhole>());
    } else if constexpr (key.precision != kRoundedTape || Entry::kPacksTape) {
      if constexpr (kFits<Memory<Entry, kExecution>>) {
        report(Entry::kName, key, train<Entry, kExecution>());
      } else {
        ++left_out;
      }
    }
  }
}

template <class Entry, Precision precision, int batch = 1>
void with_each_mask() {
  run<Entry, Key{precision, Masking::kNone, batch}>();
  run<Entry, Key{precision, Masking::kCausal, batch}>();
  run<Entry, Key{precision, Masking::kPadding, batch}>();
}

template <class Entry>
void run_keys() {
#ifdef ATTUNE_ZOO_EVERY_KEY
  with_each_mask<Entry, kFloats>();
  with_each_mask<Entry, kFloats, kManySequences>();
  with_each_mask<Entry, kIntegers>();
  with_each_mask<Entry, kIntegers, kManySequences>();
  with_each_mask<Entry, kRoundedTape>();
  with_each_mask<Entry, kRoundedTape, kManySequences>();
  with_each_mask<Entry, kInference>();
  with_each_mask<Entry, kInt8Inference>();
#else
  constexpr Masking kMax = (Entry::kMasks & bit(Masking::kPadding)) != 0  ? Masking::kPadding
                           : (Entry::kMasks & bit(Masking::kCausal)) != 0 ? Masking::kCausal
                                                                          : Masking::kNone;
  run<Entry, Key{Entry::kOnBoards, kMax, kManySequences}>();
#endif
}

template <class... Entries>
void run_all(List<Entries...>) {
  (run_keys<Entries>(), ...);
}

}  // namespace

int main() {
#ifdef ATTUNE_ZOO_MODELS
  run_all(List<ATTUNE_ZOO_MODELS>{});
#else
  run_all(Zoo{});
#endif
  if (left_out > 0) port::print(left_out, " have no room\n");
  port::print(passed, " passed, ", failed, " failed\n");
  return failed == 0 && passed > 0 ? 0 : 1;
}
