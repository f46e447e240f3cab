// One property: two executions with the same key have the same bits. Executions are drawn so that any two
// values of two axes (model, precision, mask, batch, way, resumed state) meet in one of them, and compared
// with the golden hash of their key.
#pragma once

#include <utility>

#include "check.hpp"
#include "zoo/cover.hpp"
#include "zoo/golden.hpp"
#include "zoo/threads.hpp"

namespace zoo {

#ifndef ATTUNE_ZOO_SEED
#define ATTUNE_ZOO_SEED 1
#endif

/// What the rows need to know of a model.
struct Traits {
  std::string_view name;
  unsigned masks;
  bool packs_tape, has_lanes, streams, has_twin;
};
template <class... Entries>
constexpr auto traits_of(List<Entries...>) {
  return std::array{Traits{Entries::kName, Entries::kMasks, Entries::kPacksTape, Entries::kHasLanes,
                           Entries::kStreams, requires {typename Entries::Twin;
}
}  // namespace zoo
...
}
;
}
inline constexpr auto kTraits = traits_of(Zoo{});
template <class Entry>
constexpr int index_of() {
  int index = 0;
  while (kTraits[static_cast<std::size_t>(index)].name != Entry::kName) ++index;
  return index;
}

inline constexpr int kModels = static_cast<int>(kTraits.size());

/// Axes of trainings. Executions that do not exist, with the reason.
enum TrainingAxis : std::size_t { kModelAxis, kPrecisionAxis, kMaskAxis, kBatchAxis, kWayAxis, kResumedAxis };
constexpr const char* training_conflict(std::size_t a, int i, std::size_t b, int j) {
  const Way way{j};
  if (a == kModelAxis) {
    const Traits& model = kTraits[static_cast<std::size_t>(i)];
    if (b == kMaskAxis && (model.masks & bit(Masking{j})) == 0) return "the model takes no such mask";
    if (b == kPrecisionAxis && Precision{j} == Precision::kRoundedTape && !model.packs_tape)
      return "a single layer has no tape to pack";
    if (b == kWayAxis && way == Way::kLockstep && !model.has_lanes) return "packed weights have no lanes";
    if (b == kWayAxis && way == Way::kTwin && !model.has_twin) return "the model has no twin";
  }
  if (b == kWayAxis && way == Way::kLockstep) {
    if (a == kPrecisionAxis && Precision{i} == Precision::kIntegers) return "Lockstep trains in floats";
    if (a == kPrecisionAxis && Precision{i} == Precision::kRoundedTape) return "a packed tape has no lanes";
    if (a == kMaskAxis && (Masking{i} == Masking::kPadding || Masking{i} == Masking::kLength))
      return "sequences of different lengths run one by one";
  }
  if (a == kPrecisionAxis && b == kWayAxis && Precision{i} != Precision::kFloats && way == Way::kTwin)
    return "what a twin keeps is rounded otherwise";
  if (a == kBatchAxis && b == kWayAxis) {
    if (way == Way::kInBackward && i == 1) return "UpdateInBackward has no gradients to add up";
    if ((way == Way::kLockstep || way == Way::kThreads) && i == 0)
      return "one sequence needs no lanes and no threads";
  }
  return nullptr;
}
inline constexpr auto kTrainings =
    cover<200>(std::array{kModels, 3, 4, 2, 9, 2}, training_conflict, std::uint32_t{ATTUNE_ZOO_SEED});
static_assert(kTrainings.complete);

/// The same for inference; its last ways are host::ParallelInference and CrewInference.
inline constexpr int kOnThreads = 6, kOnCrew = 7;
constexpr bool is_in_stream(int way) {
  return Inference{way} == Inference::kTokens || Inference{way} == Inference::kSeveralTokens;
}
constexpr const char* inference_conflict(std::size_t a, int i, std::size_t b, int j) {
  const bool in_stream = b == 2 && is_in_stream(j);
  if (a == 0) {
    const Traits& model = kTraits[static_cast<std::size_t>(i)];
    if (b == 1 && (model.masks & bit(Masking{j})) == 0) return "the model takes no such mask";
    if (in_stream && !model.streams) return "an output depends on later tokens";
  }
  if (a == 1 && in_stream && Masking{i} != Masking::kCausal) return "a stream has no later tokens";
  return nullptr;
}
inline constexpr auto kInferences =
    cover<160>(std::array{kModels, 4, 8}, inference_conflict, std::uint32_t{ATTUNE_ZOO_SEED});
static_assert(kInferences.complete);

inline void expect_golden(std::string_view model, const Key& key, int way, bool resumed,
                          const Outcome& outcome) {
  EXPECT_EQ(outcome.status, Status::kOk) << message(outcome.status);
  EXPECT_EQ(outcome.hash, golden(model, key)) << model << ", " << kPrecisions[static_cast<int>(key.precision)]
                                              << ", mask " << static_cast<int>(key.masking) << ", batch "
                                              << key.batch << ", way " << way << (resumed ? ", resumed" : "");
}

template <class Entry, std::size_t index>
void expect_training() {
  constexpr auto kRow = kTrainings.row[index].value;
  if constexpr (kRow[kModelAxis] == index_of<Entry>()) {
    constexpr Execution kExecution{{Precision{kRow[kPrecisionAxis]}, Masking{kRow[kMaskAxis]},
                                    kRow[kBatchAxis] == 0 ? 1 : kManySequences},
                                   Way{kRow[kWayAxis]},
                                   kRow[kResumedAxis] == 1};
    Outcome outcome;
    if constexpr (kExecution.way == Way::kThreads) {
      outcome = train_on_threads<Entry, kExecution>();
    } else if constexpr (kExecution.way == Way::kCrew) {
      outcome = train_on_crew<Entry, kExecution>();
    } else {
      outcome = train<Entry, kExecution>();
    }
    expect_golden(Entry::kName, kExecution.key, kRow[kWayAxis], kExecution.resumed, outcome);
  }
}

template <class Entry, std::size_t index>
void expect_inference() {
  constexpr auto kRow = kInferences.row[index].value;
  if constexpr (kRow[0] == index_of<Entry>()) {
    constexpr Masking kMasking{kRow[1]};
    constexpr Key kFloats{Precision::kInference, kMasking}, kInt8{Precision::kInt8Inference, kMasking};
    if constexpr (kRow[2] == kOnThreads) {
      expect_golden(Entry::kName, kFloats, kRow[2], false, infer_on_threads<Entry, kFloats>());
    } else if constexpr (kRow[2] == kOnCrew) {
      expect_golden(Entry::kName, kFloats, kRow[2], false, infer_on_crew<Entry, kFloats>());
    } else {
      expect_golden(Entry::kName, kFloats, kRow[2], false, infer_each<Entry, kFloats, Inference{kRow[2]}>());
    }
    if constexpr (is_in_stream(kRow[2])) {
      expect_golden(Entry::kName, kInt8, kRow[2], false, infer_each<Entry, kInt8, Inference{kRow[2]}>());
    }
  }
}

/// All rows of some models.
template <class... Entries>
void expect_same_trainings(List<Entries...>) {
  const auto of_model = []<class Entry, std::size_t... index>(Entry, std::index_sequence<index...>) {
    (expect_training<Entry, index>(), ...);
  };
  (of_model(Entries{}, std::make_index_sequence<kTrainings.count>{}), ...);
}
template <class... Entries>
void expect_same_inferences(List<Entries...>) {
  const auto of_model = []<class Entry, std::size_t... index>(Entry, std::index_sequence<index...>) {
    (expect_inference<Entry, index>(), ...);
  };
  (of_model(Entries{}, std::make_index_sequence<kInferences.count>{}), ...);
}

}  // namespace zoo
