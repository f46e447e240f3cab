// Histories of power cuts of a replay memory on unsettled flash (exchange/unsettled_flash.hpp), for its unit
// test and for fuzz/unsettled_flash.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <attune/persistence/flash_replay_memory.hpp>

#include "exchange/unsettled_flash.hpp"

namespace replay_history {

using attune::Status;

using Features = attune::Tensor<float, 2, 4>;
constexpr attune::ReplayShape kShape{.capacity = 8, .num_classes = 4};
template <class Flash>
using MemoryIn = attune::FlashReplayMemory<Flash, Features, kShape>;

/// Features that tell their number, which 8 bits store exactly.
inline Features example(int number) {
  Features made;
  for (float& value : made.values) value = static_cast<float>(number);
  made(0, 0) = made(1, 0) = 127;
  return made;
}
inline int label_of(int number) { return number % kShape.num_classes; }

/// The numbers of the stored examples of each class, the older place first; −1: none, −2: damaged.
struct Contents {
  int numbers[kShape.capacity];
  bool operator==(const Contents&) const = default;
};
/// What a memory stores, by as many draws as find all of it.
template <class SomeMemory>
Contents contents(SomeMemory& memory) {
  Contents found;
  for (int& number : found.numbers) number = -1;
  attune::Rng rng(1);
  for (int draws = 0; draws < 40 && memory.size() > 0; ++draws) {
    Features features;
    int label = 0, length = 0;
    const Status status = memory.draw(rng, features, label, length);
    const int number = static_cast<int>(std::lround(features(1, 3)));
    const Features made = example(number);
    const bool right = status == Status::kOk && label == label_of(number) && length == 2 &&
                       std::memcmp(&features, &made, sizeof made) == 0;
    int* const of_class = found.numbers + 2 * (right ? label : 0);
    if (!right) {
      of_class[0] = -2;
    } else if (of_class[0] == -1 || of_class[0] == number) {
      of_class[0] = number;
    } else {
      of_class[1] = number;
    }
  }
  for (int label = 0; label < kShape.num_classes; ++label) {
    int* const of_class = found.numbers + 2 * label;
    if (of_class[1] >= 0 && of_class[1] < of_class[0]) std::swap(of_class[0], of_class[1]);
  }
  return found;
}
/// Whether all examples whose add() answered kOk are stored, but for those that another one replaced.
inline bool keeps(const Contents& settled, const Contents& found) {
  for (int label = 0; label < kShape.num_classes; ++label) {
    const int* const old = settled.numbers + 2 * label;
    const int* const now = found.numbers + 2 * label;
    int missing = 0, others = 0;
    for (int i = 0; i < 2; ++i) {
      missing += old[i] >= 0 && old[i] != now[0] && old[i] != now[1];
      others += now[i] >= 0 && now[i] != old[0] && now[i] != old[1];
    }
    if (missing > others) return false;
  }
  return true;
}

/// Whether a cut has hit an erase of the only spare slot, and another one a mark: what reads as if nothing
/// had happened may change later, and no memory knows which version of a block to keep (as a store with two
/// slots, examples/guide/power-cuts.md).
template <class Flash>
bool is_undecidable(const Flash& flash) {
  using Memory = MemoryIn<Flash>;
  constexpr std::uint32_t kUnit = Flash::kProgramUnit, kSlot = Memory::kBlockPages * Flash::kPageSize;
  constexpr auto up = [](std::size_t bytes) {
    return static_cast<std::uint32_t>((bytes + kUnit - 1) / kUnit * kUnit);
  };
  constexpr std::uint32_t kMark =
      up(sizeof(attune::detail::ReplayHead)) + Memory::kBlockEntries * up(sizeof(typename Memory::Entry) + 4);
  int marks = 0, erases = 0;
  for (std::uint32_t at = 0; at < Memory::kSlots * kSlot; at += kSlot) {
    const bool mark_was_cut = flash.was_cut(at + kMark, up(8)), rest_was_cut = flash.was_cut(at, kMark);
    marks += mark_was_cut && !rest_was_cut;
    erases += mark_was_cut && rest_was_cut;
  }
  return Memory::kSlots == Memory::kBlocks + 1 && marks > 0 && erases > 0;
}

inline constexpr const char* kLost = "a stored example stays";
/// A history of cuts; what did not hold, or nullptr.
template <class Flash>
const char* run(std::uint32_t seed, bool& undecidable) {
  static Flash flash;
  ::new (&flash) Flash(seed);
  constexpr int kNumbers = 120;
  bool is_settled[kNumbers] = {};
  Contents settled;
  for (int& each : settled.numbers) each = -1;
  for (int session = 0, number = 0; session < 12; ++session) {
    MemoryIn<Flash> memory(flash);
    if (flash.random() % 4 == 0) flash.spoil(flash.random() % 60);
    if (memory.open() != Status::kOk) return "open() opens after a cut";
    if (flash.random() % 4 != 0) flash.cut_at(flash.random() % 60);
    for (int adds = 0; adds < 8 && flash.powered() && number < kNumbers; ++adds, ++number) {
      undecidable |= is_undecidable(flash);
      const Contents before = contents(memory);
      for (const int each : before.numbers) {
        if (each == -2) return "an example is read as it was stored";
      }
      if (!keeps(settled, before)) return kLost;
      if (memory.add(example(number), label_of(number)) != Status::kOk) continue;
      const Contents after = contents(memory);
      for (int i = 2 * label_of(number); i < 2 * label_of(number) + 2; ++i) {
        const int stored = after.numbers[i];
        is_settled[number] |= stored == number;
        settled.numbers[i] = stored >= 0 && is_settled[stored] ? stored : -1;
      }
    }
    flash.power_on();
  }
  return flash.misuses == 0 ? nullptr : "nothing is programmed that was not erased";
}

}  // namespace replay_history
